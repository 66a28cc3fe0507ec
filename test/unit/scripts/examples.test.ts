import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";

const folder = join(import.meta.dirname, "..", "..", "..", "examples");
const WORKLOADS = ["CronJob", "Deployment", "Job", "Namespace", "Pod", "Service", "StatefulSet"];

test("contain only workloads, their Service and their namespace in the folder that is applied as a whole", () => {
  const kinds = globSync("*.yaml", { cwd: folder }).flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), "utf8")).map(
      (document) => z.object({ kind: z.string() }).parse(document.toJS()).kind,
    ),
  );
  expect([...new Set(kinds)].sort()).toEqual(WORKLOADS);
});

const modifiers = z.object({
  resourceModifierRules: z.array(
    z.object({
      conditions: z.object({ groupResource: z.string() }),
      mergePatches: z.tuple([z.object({ patchData: z.string().transform((text) => parse(text)) })]),
    }),
  ),
});
const configMap = z.object({
  data: z.object({ "rules.yaml": z.string().transform((text) => modifiers.parse(parse(text))) }),
});
const policy = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ variables: z.array(z.object({ name: z.string(), expression: z.string() })) }),
});

test.each([
  ["pods", "legation-delegation", "decisions"],
  ["persistentvolumeclaims", "legation-claims", "changed"],
])("remove from restored %s, by Velero's rules, what the policy %s refuses there", (resource, named, variable) => {
  const { data } = configMap.parse(parse(readFileSync(join(folder, "velero", "resource-modifiers.yaml"), "utf8")));
  const rule = data["rules.yaml"].resourceModifierRules.find(({ conditions }) => conditions.groupResource === resource);
  const manifests = readFileSync(join(folder, "..", "manifests", "policies.yaml"), "utf8");
  const refusing = parseAllDocuments(manifests)
    .map((document) => policy.safeParse(document.toJS()).data)
    .find((found) => found?.metadata.name === named);
  const written = refusing?.spec.variables.find(({ name }) => name === variable)?.expression ?? "";
  const [list = ""] = /^\[.*?\]/s.exec(written) ?? [];
  const keys = z.array(z.string()).nonempty().parse(JSON.parse(list));
  expect(rule?.mergePatches[0].patchData).toEqual({
    metadata: { annotations: Object.fromEntries(keys.map((key) => [key, null])) },
  });
});
