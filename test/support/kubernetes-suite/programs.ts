import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn, moduleSource } from "../clusters/build.ts";
import { versionFlags } from "../clusters/planes.ts";

/** Full paths of Kubernetes' e2e suite and of the programs in its images. */
export interface SuitePrograms {
  readonly suite: string;
  readonly agnhost: string;
  readonly nonewprivs: string;
  readonly sampleApiServer: string;
  readonly etcd: string;
  /** Folder with the files of images, by the images' names. */
  readonly imageFiles: string;
}

const FOLDER = moduleFolder("../kubernetes-suite/module");
const IMAGES = "k8s.io/kubernetes/test/images";
const IMAGE_FILES = "image-files";

const SUITE: GoPrograms = {
  ...moduleIn(FOLDER),
  name: "e2e",
  needs: "Kubernetes' e2e suite needs",
  packages: { "e2e.test": "k8s.io/kubernetes/test/e2e" },
  ldflags: versionFlags(FOLDER),
  isTest: true,
};
const PROGRAMS: GoPrograms = {
  ...moduleIn(FOLDER),
  name: "e2e-images",
  needs: "Kubernetes' e2e suite needs",
  packages: {
    agnhost: `${IMAGES}/agnhost`,
    nonewprivs: `${IMAGES}/nonewprivs`,
    "sample-apiserver": "k8s.io/sample-apiserver",
    etcd: "go.etcd.io/etcd/server/v3",
  },
  // Images have no libraries. With CGO_ENABLED=0 nothing of what the planes' build left in Go's cache would fit.
  ldflags: `${versionFlags(FOLDER)} -linkmode=external -extldflags=-static`,
  extras: { [IMAGE_FILES]: copyImageFiles },
};

function copyImageFiles(to: string): void {
  const source = join(moduleSource(FOLDER, "k8s.io/kubernetes"), "test", "images");
  mkdirSync(to);
  for (const [image, folder] of [
    ["agnhost", "agnhost/porter"],
    ["kitten", "kitten/html"],
    ["nautilus", "nautilus/html"],
  ] as const) {
    cpSync(join(source, folder), join(to, image), { recursive: true });
  }
}

/** Builds what the cache lacks: about ten minutes the first time. */
export async function ensureSuite(onProgress: (line: string) => void): Promise<SuitePrograms> {
  const suite = await ensureBuilt(SUITE, Object.keys(SUITE.packages), onProgress);
  const programs = await ensureBuilt(PROGRAMS, Object.keys(PROGRAMS.packages), onProgress);
  return {
    suite: join(suite, "e2e.test"),
    agnhost: join(programs, "agnhost"),
    nonewprivs: join(programs, "nonewprivs"),
    sampleApiServer: join(programs, "sample-apiserver"),
    etcd: join(programs, "etcd"),
    imageFiles: join(programs, IMAGE_FILES),
  };
}
