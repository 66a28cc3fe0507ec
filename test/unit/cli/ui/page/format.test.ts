import { expect, test } from "vitest";
import { localTime, parted, zonedTime } from "../../../../../src/cli/ui/page/format.ts";

test.each([
  ["UTC", "2026-11-29 03:04:05 UTC"],
  ["Asia/Tokyo", "2026-11-29 12:04:05 GMT+9"],
])("a time with its date and time zone is unambiguous in %s", (zone, text) => {
  expect(zonedTime("2026-11-29T03:04:05Z", zone)).toBe(text);
});

test.each(["", "soon", "9999-99-99T00:00:00Z"])("what is no time (%j) is shown as none, and breaks no view", (at) => {
  expect([zonedTime(at), localTime(at, 0)]).toEqual(["–", "–"]);
});

test.each([
  ["web-f5797495d-cfqsd", "web-f5797495d", "-cfqsd"],
  ["Deployment/web", "Deployment", "/web"],
  ["toolbox", "toolbox", ""],
  ["ip-10-0-1-23.ec2.internal", "ip-10-0-1-23.ec2.internal", ""],
])("the name %s is cut before its last word", (name, head, end) => {
  expect(parted(name)).toEqual([head, end]);
});
