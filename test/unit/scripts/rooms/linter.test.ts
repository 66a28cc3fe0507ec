import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { describe, expect, it, test } from "vitest";
import { allowedImports, type Room } from "../../../../scripts/rooms/room.ts";
import { ROOMS } from "../../../../scripts/rooms/table.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** Imports that the rules refuse: in which file, of what, and words of the message. */
const REFUSED: readonly (readonly [string, string, string, string])[] = [
  ["a room above", "src/pods/a.ts", "../controllers/proxies.ts", "pods may import api"],
  ["another controller", "src/controllers/claims/a.ts", "../overflow/model.ts", "controllers/claims may import"],
  [
    "another controller, from a subfolder",
    "src/controllers/services/exports/a.ts",
    "../../overflow/model.ts",
    "services may",
  ],
  ["the inside of a room", "src/runtime/a.ts", "../kube/internal/transport.ts", "runtime may import"],
  ["a client from a decision", "src/controllers/claims/decide.ts", "../../kube/client.ts", "decide*.ts may import"],
  ["a module of Node.js from pure code", "src/pods/b.ts", "node:fs", "Pure code"],
  ["a reserved package", "src/pods/c.ts", "undici", "Only src/kube"],
  ["anything from a folder without a row", "src/queues/a.ts", "../api/keys.ts", "has no row"],
];

/** Imports that the rules allow. */
const ALLOWED: readonly (readonly [string, string, string])[] = [
  ["a room of the row", "src/pods/d.ts", "../api/keys.ts"],
  ["a file of the room, upwards", "src/controllers/services/exports/b.ts", "../controller.ts"],
  ["a single file of another room", "src/copies/a.ts", "../kube/resources.ts"],
  ["a package of the row", "src/kube/internal/a.ts", "undici"],
];

describe("the linter's rules of imports", () => {
  const messages = lint([...REFUSED, ...ALLOWED].map(([, path, specifier]) => [path, specifier]));

  test.each(REFUSED)("refuse %s", (_, path, __, message) => {
    expect(messages.get(path)).toContain(message);
  });

  test.each(ALLOWED)("allow %s", (_, path) => {
    expect(messages.get(path)).toBeUndefined();
  });
});

/** Returns the linter's message about each file that has this import alone. Files without a message have no entry. */
function lint(files: readonly (readonly [path: string, specifier: string])[]): ReadonlyMap<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "rooms-"));
  try {
    cpSync(join(root, "scripts/lint"), join(folder, "scripts/lint"), { recursive: true });
    const configuration = { extends: [join(root, "scripts/rooms/linter.json")], linter: { rules: { preset: "none" } } };
    writeFileSync(join(folder, "biome.json"), JSON.stringify(configuration));
    for (const [path, specifier] of files) {
      mkdirSync(join(folder, dirname(path)), { recursive: true });
      writeFileSync(join(folder, path), `import * as imported from "${specifier}";\n\nexport { imported };\n`);
    }
    const args = ["lint", "--reporter=github", "--max-diagnostics=none", "."];
    const { stdout } = spawnSync(join(root, "node_modules/.bin/biome"), args, { cwd: folder, encoding: "utf8" });
    const found = stdout.matchAll(/^::error .*?file=([^,]+),.*?::(.*)$/gm);
    return new Map([...found].map(([, file = "", message = ""]) => [relative(folder, file), message]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("the table of rooms", () => {
  const imports = importedFiles();

  it.each(ROOMS.map((room) => [room.room, room] as const))("has no permission that %s does not use", (_, room) => {
    const targets = [...imports].filter(([file]) => belongs(file, room)).flatMap(([, imported]) => imported);
    const further = [...room.imports, ...(room.exceptions ?? [])];
    expect(further.filter((name) => !targets.some((file) => belongs(file, { ...room, room: name })))).toEqual([]);
  });

  it("names no room twice, neither in a row nor among its foundation's", () => {
    const names = ROOMS.map(({ room }) => room);
    expect(names).toEqual([...new Set(names)]);
    const twice = ROOMS.filter((room) => {
      const all = [...allowedImports(room), ...(room.exceptions ?? [])];
      return all.length !== new Set(all).size;
    });
    expect(twice.map(({ room }) => room)).toEqual([]);
  });
});

/** Returns the files that each source imports, relative to the root. */
function importedFiles(): ReadonlyMap<string, readonly string[]> {
  const files = globSync("{src,webhook}/**/*.{ts,tsx}", { cwd: root });
  return new Map(
    files.map((file) => {
      const text = readFileSync(root + file, "utf8");
      const found = [...text.matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)].map(([, path = ""]) =>
        join(dirname(file), path),
      );
      return [file, found];
    }),
  );
}

/** Reports whether the file is one of the row's: in its folder, but in none that has a row of its own. */
function belongs(file: string, { room }: Pick<Room, "room">): boolean {
  const path = room === "webhook" ? room : `src/${room}`;
  if (room.endsWith(".ts")) return globSync(path, { cwd: root }).includes(file);
  if (!new RegExp(`^${path.replace("*", "[^/]+")}/`).test(file)) return false;
  return !ROOMS.some(
    (other) => other.room.startsWith(`${room}/`) && !other.room.endsWith(".ts") && belongs(file, other),
  );
}
