"""Validators of the documents that the service writes, one for each schema."""

from jsonschema import Draft202012Validator

from tests.core.shipped import schema

RECORD = Draft202012Validator(schema("run_record.v2"))
STATUS = Draft202012Validator(schema("drop_status.v1"))
SUBMITTED = Draft202012Validator(schema("submitted_request.v1"))
REPORT = Draft202012Validator(schema("rejection_report.v1"))
NOTICE = Draft202012Validator(schema("notice.v1"))
DELIVERIES = Draft202012Validator(schema("notice_deliveries.v1"))
FILES = Draft202012Validator(schema("model_files.v1"))
CHAMPION = Draft202012Validator(schema("champion.v1"))
RULE_STATUS = Draft202012Validator(schema("rule_status.v1"))
RULE_STATE = Draft202012Validator(schema("rule_state.v1"))
RULE_BOOK = Draft202012Validator(schema("rule_book.v1"))
