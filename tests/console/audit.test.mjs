import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ACTIONS, caller, deed, isFiltered, readOf, values } from "../../src/trainmaster/console/static/views/audit.js";
import { NOW } from "./cases.mjs";

const { components } = JSON.parse(readFileSync(new URL("../../docs/reference/openapi.json", import.meta.url), "utf8"));
const entry = (changes = {}) => ({ at: "2026-11-21T15:54:00Z", action: "priority", principal: "arn:aws:iam::1:role/ml", arn: "arn:aws:sts::1:assumed-role/ml/ada", sourceIp: null, userAgent: null, requestId: null, job: "bert", before: {}, after: {}, ...changes });

test("every action of the API has its words", () => {
  assert.deepEqual(Object.keys(ACTIONS).sort(), [...components.schemas.AuditAction.enum].sort());
  assert.equal(deed(entry()), "changed the priority");
  assert.equal(deed(entry({ action: "later" })), "later");
});

test("filters become a read of the API", () => {
  assert.equal(readOf({}, NOW), "/audit?limit=50");
  assert.equal(readOf({ who: "ada", action: "hold", job: "b", cursor: "x" }, NOW), "/audit?who=ada&action=hold&job=b&limit=50&cursor=x");
  assert.match(readOf({ since: "2026-11-20" }, NOW), /^\/audit\?since=2026-11-(19|20)T\d\d%3A\d\d%3A00Z&limit=50$/);
  for (const since of ["soon", "2026-11-23", "2026-99-99", "2026-11-20T00:00"]) assert.equal(readOf({ since }, NOW), "/audit?limit=50");
  assert.equal(readOf({ action: "toString" }, NOW), "/audit?limit=50");
  assert.deepEqual([isFiltered({}), isFiltered({ cursor: "x" }), isFiltered({ job: "a" })], [false, false, true]);
});

test("an entry says who changed which values", () => {
  assert.deepEqual(caller(entry()), { name: "ada", arn: "arn:aws:sts::1:assumed-role/ml/ada" });
  assert.deepEqual(caller(entry({ arn: null, principal: null })), { name: "unknown", arn: "" });
  const found = values(entry({ before: { priority: 5, heldBy: null, gone: [1] }, after: { priority: 7, heldBy: "ada", digest: "00ff" } }), NOW);
  assert.deepEqual(found, [{ name: "priority", before: "5", after: "7" }, { name: "heldBy", before: "none", after: "ada" }, { name: "gone", before: "[1]", after: null }]);
});
