import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

const folder = join(import.meta.dirname, "..", "..", "..", "examples");
const WORKLOADS = ["CronJob", "Deployment", "Job", "Namespace", "Pod", "Service", "StatefulSet"];

test("the folder of examples, which is applied as a whole, has workloads, their Service and their namespace only", () => {
  const kinds = globSync("*.yaml", { cwd: folder }).flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), "utf8")).map(
      (document) => z.object({ kind: z.string() }).parse(document.toJS()).kind,
    ),
  );
  expect([...new Set(kinds)].sort()).toEqual(WORKLOADS);
});
