import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "../../support/legation/cli.ts";

const FOLDER = join(ROOT, ".github", "workflows");
const FILES = readdirSync(FOLDER).sort();
const read = (file: string): string => readFileSync(join(FOLDER, file), "utf8");

const step = z.strictObject({
  id: z.string().optional(),
  uses: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  run: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
});
const job = z.strictObject({
  if: z.string().optional(),
  needs: z.union([z.string(), z.array(z.string())]).optional(),
  "runs-on": z.string(),
  "timeout-minutes": z.number(),
  permissions: z.record(z.string(), z.enum(["read", "write"])).optional(),
  environment: z.unknown().optional(),
  steps: z.array(step),
});
const workflow = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: z.strictObject({ contents: z.literal("read") }),
  concurrency: z.unknown(),
  env: z.record(z.string(), z.string()).optional(),
  jobs: z.record(z.string(), job),
});
type Workflow = z.output<typeof workflow>;

const workflows = Object.fromEntries(FILES.map((file) => [file, workflow.parse(parse(read(file)))]));
const runsOf = ({ jobs }: Workflow): string[] =>
  Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));

test("there is one workflow for tests, one for the site and one for releases", () => {
  expect(FILES).toEqual(["release.yml", "site.yml", "test.yml"]);
});

describe.each(Object.entries(workflows))("the workflow %s", (file, each) => {
  test("does nothing until a repository variable switches it on", () => {
    for (const [name, { if: guard, needs }] of Object.entries(each.jobs)) {
      if (needs === undefined) expect(guard, name).toMatch(/^vars\.LEGATION_[A-Z]+ == 'true'/);
      // A job whose need was skipped is skipped, too, unless it has a condition of its own.
      else expect(guard, name).toBeUndefined();
    }
  });

  test("names actions by the hash of a commit, with the version beside it", () => {
    const lines = read(file)
      .split("\n")
      .filter((line) => line.includes("uses: "));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test("runs only npm scripts and files that exist", () => {
    const { scripts }: { scripts: Record<string, string> } = JSON.parse(
      readFileSync(join(ROOT, "package.json"), "utf8"),
    );
    for (const run of runsOf(each)) {
      for (const [, name = ""] of run.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)) {
        expect(Object.keys(scripts)).toContain(name);
      }
      for (const [path] of run.matchAll(/(?:\.ci|scripts)\/[\w./-]+/g))
        expect(existsSync(join(ROOT, path)), path).toBe(true);
    }
  });

  test("puts no expression into a script, which whoever names a branch or tag could fill", () => {
    for (const run of runsOf(each)) expect(run).not.toContain("${{");
  });

  test("names files of the tree that exist", () => {
    for (const [, path = ""] of read(file).matchAll(/(?:go-version-file|cache-dependency-path): (\S+)/g)) {
      expect(existsSync(join(ROOT, path)), path).toBe(true);
    }
  });
});

test("the release begins with a tag alone, and each job has the rights that it needs and no others", () => {
  const { on, jobs } = workflows["release.yml"] as Workflow;
  expect(on).toEqual({ push: { tags: ["v*"] } });
  expect(Object.fromEntries(Object.entries(jobs).map(([name, { permissions }]) => [name, permissions]))).toEqual({
    artefacts: undefined,
    image: { contents: "read", packages: "write", "id-token": "write" },
    chart: { packages: "write", "id-token": "write" },
    npm: { "id-token": "write" },
    notes: { contents: "write" },
  });
});

test("the release publishes files that `npm run artefacts` writes", () => {
  const source = readFileSync(join(ROOT, "scripts/release/artefacts.ts"), "utf8").replaceAll(
    /\$\{version\}/g,
    "VERSION",
  );
  const text = runsOf(workflows["release.yml"] as Workflow).join("\n");
  const names = [...text.matchAll(/release\/(legation[^"\s]*)/g)].map(([, name = ""]) =>
    name.replace(/\$VERSION|\$\{TAG#v\}/, "VERSION"),
  );
  expect(names.sort()).toEqual(["legation-VERSION.cdx.json", "legation-VERSION.tgz", "legation-chart-VERSION.tgz"]);
  // npm names the package itself.
  for (const name of names.filter((each) => each !== "legation-VERSION.tgz")) expect(source).toContain(name);
});
