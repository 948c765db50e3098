# stub.sh [SECONDS]: takes so long, if any, and leaves a file that looks like a model in AIP_MODEL_DIR.
if [ -n "$1" ]; then sleep "$1" || exit; fi
directory="${TRAINMASTER_GCS_ROOT:-/gcs}/${AIP_MODEL_DIR#gs://}"
mkdir -p "$directory" && echo stub > "$directory/saved_model.pb"
