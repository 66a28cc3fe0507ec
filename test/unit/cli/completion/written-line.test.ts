import { Option } from "commander";
import { expect, test } from "vitest";
import { readLine } from "../../../../src/cli/completion/complete.ts";

const options = [new Option("-n, --namespace <name>"), new Option("--context <name>"), new Option("--watch")];

test.each<[string, readonly string[], Record<string, string>, string | undefined]>([
  ["status -n shop web", ["status", "web"], { "--namespace": "shop" }, undefined],
  ["status --context=a=b", ["status"], { "--context": "a=b" }, undefined],
  ["--watch status --unknown web", ["status", "web"], {}, undefined],
  ["plan -f - --namespace", ["plan", "-"], {}, "--namespace"],
  ["--context --watch", [], { "--context": "--watch" }, undefined],
])("reads of `%s` its words, flags and the flag whose value comes next", (line, plain, flags, open) => {
  const read = readLine(line.split(" "), options);
  expect([read.plain, Object.fromEntries(read.flags), read.open?.long]).toEqual([plain, flags, open]);
});
