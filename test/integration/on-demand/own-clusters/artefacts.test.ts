import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import { CHECKSUMS, writeArtefacts } from "../../../../scripts/release/artefacts.ts";
import { packageVersion } from "../../../../src/cli/shared/package-root.ts";
import { ensurePrograms } from "../../../support/engines/programs.ts";
import { startProgram } from "../../../support/engines/run.ts";
import { CHART, helm } from "../../../support/legation/chart.ts";
import { ROOT } from "../../../support/legation/cli.ts";

// Makes the files of a release, and uses each as its users do. Needs no cluster, but the registry of npm.
const VERSION = packageVersion();

let work: string;
let release: string;
let files: string[];
let server: Server;

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), "legation-artefacts-"));
  release = join(work, "release");
  server = createServer((request, response) => {
    response.end(readFileSync(join(release, request.url ?? "")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  files = await writeArtefacts({ folder: release, url: `http://127.0.0.1:${port}/` });
}, 900_000);
afterAll(() => {
  server.close();
  rmSync(work, { recursive: true, force: true });
});

const file = (name: string): string => join(release, name);

function folder(name: string): string {
  const path = join(work, name);
  mkdirSync(path);
  return path;
}

test("has checksums of all files", () => {
  expect(readdirSync(release).sort()).toEqual([...files].sort());
  const named = readFileSync(file(CHECKSUMS), "utf8").trim().split("\n");
  expect(named.map((line) => line.split("  ")[1]).sort()).toEqual(files.filter((name) => name !== CHECKSUMS).sort());
  const check = (): number | null =>
    spawnSync("sha256sum", ["--check", "--strict", CHECKSUMS], { cwd: release }).status;
  expect(check()).toBe(0);
  const manifest = readFileSync(file("legation.yaml"));
  writeFileSync(file("legation.yaml"), "changed");
  try {
    expect(check()).toBe(1);
  } finally {
    writeFileSync(file("legation.yaml"), manifest);
  }
});

describe("the npm package", () => {
  let empty: string;
  const npx = (...args: string[]): string =>
    execFileSync("npx", ["--yes", "--prefer-offline", `--package=${file(`legation-${VERSION}.tgz`)}`, ...args], {
      cwd: empty,
      encoding: "utf8",
      env: { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) },
    });
  beforeAll(() => {
    empty = folder("empty");
  });

  test.each([
    [["legation", "version", "--client"], `command line  ${VERSION} `],
    [["kubectl-legation", "version", "--client"], `command line  ${VERSION} `],
    [["legation", "completion", "bash"], "complete -"],
    [["legation", "ui", "--help"], "--listen <address>"],
  ])("runs by npx: %j", (args, said) => {
    expect(npx(...args)).toContain(said);
    expect(readdirSync(empty)).toEqual([]);
  });

  test("is installed into an empty folder, with the script of its page", () => {
    const installed = folder("installed");
    const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", file(`legation-${VERSION}.tgz`)];
    execFileSync("npm", args, { cwd: installed, stdio: ["ignore", "ignore", "inherit"] });
    const program = join(installed, "node_modules", ".bin", "legation");
    const said = execFileSync(process.execPath, [program, "version", "--client"], { encoding: "utf8" });
    expect(said).toContain(`command line  ${VERSION} `);
    const page = join(installed, "node_modules", "legation", "dist", "src", "cli", "ui", "page");
    expect(readdirSync(page).sort()).toEqual(expect.arrayContaining(["page.css", "page.js"]));
  });
});

describe("the plugin of kubectl", () => {
  let env: NodeJS.ProcessEnv;
  let validator: string;

  beforeAll(async () => {
    const programs = await ensurePrograms("krew", (line) => process.stderr.write(`krew: ${line}\n`));
    validator = join(programs, "validate-krew-manifest");
    const bin = folder("bin");
    symlinkSync(inject("kubectl"), join(bin, "kubectl"));
    symlinkSync(join(programs, "kubectl-krew"), join(bin, "kubectl-krew"));
    const root = folder("krew");
    const path = [bin, join(root, "bin"), dirname(process.execPath), process.env.PATH].join(delimiter);
    env = { ...process.env, PATH: path, KREW_ROOT: root };
  }, 900_000);

  async function validate(manifest: string): Promise<{ code: number | null; output: string }> {
    const options = { env, cwd: work, logFile: join(work, "validate.log") };
    return startProgram(validator, [`-manifest=${manifest}`], options).ended;
  }

  /** Runs kubectl while this process serves the archive. */
  async function run(...args: string[]): Promise<{ code: number | null; output: string }> {
    return startProgram("kubectl", args, { env, cwd: work, logFile: join(work, "kubectl.log") }).ended;
  }

  test("has a manifest that krew's own validation accepts, with its installation", async () => {
    const { code, output } = await validate(file("legation.yaml"));
    expect(output).toContain("all 1 spec.platforms installed fine");
    expect(code).toBe(0);
  });

  test("is refused by krew if its archive is another", async () => {
    const manifest = readFileSync(file("legation.yaml"), "utf8");
    const other = join(folder("other"), "legation.yaml");
    writeFileSync(other, manifest.replace(/sha256: .*/, `sha256: ${"f".repeat(64)}`));
    const { code, output } = await validate(other);
    expect(output).toContain("checksum does not match");
    expect(code).not.toBe(0);
  });

  test("is `kubectl legation` once krew has installed it", async () => {
    const installed = await run("krew", "install", `--manifest=${file("legation.yaml")}`);
    expect(installed.code, installed.output).toBe(0);
    expect(installed.output).toContain("Needs Node.js");
    const { code, output } = await run("legation", "version", "--client");
    expect(output).toContain(`command line  ${VERSION} `);
    expect(code).toBe(0);
  });
});

test("the chart's archive renders as the chart does", async () => {
  const packed = await helm(["template", "legation", file(`legation-chart-${VERSION}.tgz`), "--values=-"]);
  const folderOf = await helm(["template", "legation", CHART, "--values=-"]);
  expect(packed.code, packed.stderr).toBe(0);
  expect(packed.stdout).toBe(folderOf.stdout);
});

test("the image is an OCI layout whose blobs have their own digests", () => {
  const name = files.find((each) => each.startsWith("legation-image-") && each.endsWith(".tar")) ?? "";
  const layout = folder("layout");
  execFileSync("tar", ["-xf", file(name), "-C", layout]);
  const blobs = join(layout, "blobs", "sha256");
  for (const blob of readdirSync(blobs)) {
    expect(
      createHash("sha256")
        .update(readFileSync(join(blobs, blob)))
        .digest("hex"),
    ).toBe(blob);
  }
  const blobOf = ({ digest }: { digest: string }): string =>
    readFileSync(join(blobs, digest.replace("sha256:", "")), "utf8");
  const { manifests } = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const [manifest] = manifests;
  expect(readFileSync(file(name.replace(/tar$/, "digest")), "utf8")).toBe(`${manifest.digest}\n`);
  const { config, layers } = JSON.parse(blobOf(manifest));
  expect(JSON.parse(blobOf(config)).config).toMatchObject({
    User: "65532:65532",
    Entrypoint: ["/app/dist/src/cli/main.js"],
  });
  const listed = execFileSync("tar", ["-tzf", join(blobs, layers[0].digest.slice(7))], { encoding: "utf8" }).split(
    "\n",
  );
  expect(listed).toEqual(
    expect.arrayContaining([
      "./app/dist/src/cli/main.js",
      "./app/dist/src/cli/ui/page/page.js",
      "./usr/local/bin/node",
    ]),
  );
});

test("the bill of materials names every package that runs, and none of the tools", () => {
  const bill = JSON.parse(readFileSync(file(`legation-${VERSION}.cdx.json`), "utf8"));
  expect(bill).toMatchObject({
    bomFormat: "CycloneDX",
    metadata: { component: { name: "legation", version: VERSION } },
  });
  const names = bill.components.map(({ group, name }: { group?: string; name: string }) =>
    group === undefined ? name : `${group}/${name}`,
  );
  const { dependencies, devDependencies } = parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(names).toEqual(expect.arrayContaining(Object.keys(dependencies)));
  // The page has it within.
  const preact = bill.components.find(({ name }: { name: string }) => name === "preact");
  expect(preact).toMatchObject({ scope: "required" });
  for (const tool of Object.keys(devDependencies)) if (tool !== "preact") expect(names).not.toContain(tool);
});
