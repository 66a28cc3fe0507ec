import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../clusters/build.ts";
import { versionFlags } from "../clusters/planes.ts";

const FOLDER = moduleFolder("../kubernetes-suite/module");
/** Name of the binary. */
export const DRIVER_PROGRAM = "dra-test-driver";
// Containers have no libraries.
const PROGRAM: GoPrograms = {
  ...moduleIn(FOLDER),
  name: "device-driver",
  packages: { [DRIVER_PROGRAM]: "k8s.io/kubernetes/test/e2e/dra/test-driver" },
  ldflags: `${versionFlags(FOLDER)} -linkmode=external -extldflags=-static`,
};

/** Builds the driver unless it is cached; resolves to its folder. */
export function ensureDeviceDriver(onProgress: (line: string) => void): Promise<string> {
  return ensureBuilt(PROGRAM, [DRIVER_PROGRAM], onProgress);
}
