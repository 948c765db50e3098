# Start with `make demo` or `make test`: both set up what they need.

PYTHON ?= python3
PY     := .venv/bin/python
STAMP  := .venv/.installed-from-lock
PUBLISH := build/publish/bin/python

# The tests of a file run on one worker, because they share what they start, and so do the files of one stack
# (tests/scheduling.py), in the order of tests/conftest.py.
# One more worker than processors, because some tests wait; more than four workers would only wait for each other.
CORES   := $(shell getconf _NPROCESSORS_ONLN)
WORKERS := -n $(shell expr $(CORES) + 1) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# The tests start hundreds of processes from the same modules, so bytecode caches save time.
unexport PYTHONDONTWRITEBYTECODE
PYTEST  := $(PY) -m pytest --by-part --quiet $(WORKERS)

.PHONY: help setup demo demo-tuning demo-retrain test test-stack test-fast check format stage deploy undeploy doctor first-day image bench site release screenshots lock clean

help:          ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## virtual environment with the locked dependencies and the command, in .venv

demo: $(STAMP) ## watch a dropped request become a trained model, on this machine
	@$(PY) -m trainmaster demo

demo-tuning: $(STAMP) ## watch six trials search for the best model, on this machine
	@$(PY) -m trainmaster demo tuning

demo-retrain: $(STAMP) ## watch new data train the next champion, on this machine
	@$(PY) -m trainmaster demo retraining

test: $(STAMP) ## lint, types, import rules, wording and every test, in 20 minutes or more
	@echo "Checks, then every test: 20 minutes or more on two quiet cores. make test-fast takes 2 minutes."
	@$(MAKE) --no-print-directory check
	$(PYTEST)

test-stack: $(STAMP) ## the tests of the local stack alone
	$(PYTEST) tests/stack

test-fast: $(STAMP) ## the tests that take less than a second each, in about 2 minutes
	@echo "The tests that take less than a second each: about 2 minutes on two quiet cores."
	$(PYTEST) -m "not slow"

check: $(STAMP) ## lint, types, import rules, wording
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy functions/main.py trainmaster trainstack trainer tools bench examples/demo_dataset.py tests
	.venv/bin/lint-imports
	$(PY) -m tests.repo.wording

format: $(STAMP) ## fix lint and format the sources
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

stage: $(STAMP) ## the Cloud Functions source directory as it is deployed, in build/functions
	$(PY) -m trainmaster.deploy.stage build/functions

deploy: $(STAMP) ## deploy to a project, checks first: make deploy PROJECT=… REGION=… [DEPLOYMENT=…] [PLAN=1 | CHECK=1]
	$(if $(and $(PROJECT),$(REGION)),,$(error Set PROJECT and REGION: make deploy PROJECT=my-project REGION=us-central1))
	@$(PY) -m trainmaster deploy --project '$(PROJECT)' --region '$(REGION)'$(if $(DEPLOYMENT), --name '$(DEPLOYMENT)') $(if $(CHECK),--check) $(if $(PLAN),--plan)

undeploy: $(STAMP) ## remove the deployment; the buckets only with BUCKETS=delete
	$(if $(and $(PROJECT),$(REGION)),,$(error Set PROJECT and REGION: make undeploy PROJECT=my-project REGION=us-central1))
	@$(PY) -m trainmaster undeploy --project '$(PROJECT)' --region '$(REGION)'$(if $(DEPLOYMENT), --name '$(DEPLOYMENT)') $(if $(filter delete,$(BUCKETS)),--delete-buckets)

doctor: $(STAMP) ## test every part of a deployment: make doctor PROJECT=… REGION=…, or STATE=.trainmaster
	$(if $(or $(STATE),$(and $(PROJECT),$(REGION))),,$(error Set PROJECT and REGION: make doctor PROJECT=my-project REGION=us-central1, or STATE=.trainmaster for the local stack))
	@$(PY) -m trainmaster doctor $(if $(STATE),--state '$(STATE)',--project '$(PROJECT)' --region '$(REGION)')$(if $(DEPLOYMENT), --name '$(DEPLOYMENT)')

first-day: $(STAMP) ## deploy, run four small jobs, save what is answered: make first-day PROJECT=… [YES=1], or STATE=.trainmaster
	$(if $(or $(STATE),$(PROJECT)),,$(error Set PROJECT: make first-day PROJECT=my-project [REGION=us-central1] [FIXTURES=build/first-day] [YES=1], or STATE=.trainmaster for the local stack))
	@$(PY) -m tools.first_day $(if $(STATE),--state '$(STATE)',--project '$(PROJECT)' --region '$(or $(REGION),us-central1)') --fixtures '$(or $(FIXTURES),build/first-day)' $(if $(filter 1,$(YES)),--yes)

image: $(STAMP) ## build the trainer's image on this machine, without a daemon: make image [TAG=…]
	$(PY) -m trainmaster image $(if $(TAG),--tag '$(TAG)')

bench: $(STAMP) ## every benchmark, one after the other; bench/README.md has their numbers
	$(PY) bench/cold_start.py
	$(PY) bench/stack_start.py
	$(PY) bench/console.py
	$(PY) bench/trainer_throughput.py
	$(PY) bench/tuning_search.py
	$(PY) bench/tuning_cost.py
	$(PY) bench/data_events.py
	$(PY) bench/recovery.py
	$(PY) bench/checkpoint_save.py
	$(PY) bench/gateway.py
	$(PY) bench/reconcile_cost.py
	$(PY) bench/simulation.py
	$(PY) bench/fuzz.py
	$(PY) bench/fuzz.py --surfaces
	$(PY) bench/upload_flood.py

$(PUBLISH): tools/publish.txt
	@$(PY) -m venv --clear build/publish
	@$@ -m pip install --quiet --require-hashes --requirement tools/publish.txt
	@touch $@

site: $(STAMP) $(PUBLISH) ## the pages of docs/ as a site with search, in build/site
	@$(PUBLISH) -m tools.site

release: $(STAMP) $(PUBLISH) ## wheel, source distribution and list of packages, in build/dist
	@rm -rf build/dist build/released
	@$(PY) -m hatchling build --directory build/dist
	@$(PY) -m venv --without-pip build/released
	@sed -E '/^ +--hash/d; s/ \\$$//' requirements.lock > build/released/versions.txt  # the wheel has no hash there
	@$(PY) -m pip --python build/released install --quiet --constraint build/released/versions.txt build/dist/*.whl
	@rm build/released/lib/*/site-packages/trainmaster-*/direct_url.json  # it names a folder of this machine
	@$(PUBLISH) -m cyclonedx_py environment --output-reproducible --output-file build/dist/sbom.cdx.json build/released

screenshots: $(STAMP) ## pictures of every page of the console, into build/pictures; renews those that docs/ shows; needs Chromium
	$(PY) -m tests.web.browser.screenshots

lock: $(STAMP) ## resolve all dependencies again, export those of the functions and the trainer, pin the base images
	$(PY) -m tools.lock

clean:         ## remove what the other commands made
	rm -rf .venv build .trainmaster

$(STAMP): requirements.lock
	@$(PYTHON) -m tools.set_up
