import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../clusters/build.ts";

const FOLDER = moduleFolder("../clients/client-go");
const MODULE = moduleIn(FOLDER);
const CLIENT_GO: GoPrograms = {
  ...MODULE,
  name: "client-go",
  pins: () => [...MODULE.pins(), readFileSync(join(FOLDER, "main.go"), "utf8")],
  packages: { "client-go": "." },
  ldflags: "-s -w",
  isStatic: true,
};

/** Builds the client by client-go unless it is cached. It takes a kubeconfig, a namespace and a content type. */
export async function ensureClientGo(onProgress: (line: string) => void): Promise<string> {
  return join(await ensureBuilt(CLIENT_GO, ["client-go"], onProgress), "client-go");
}
