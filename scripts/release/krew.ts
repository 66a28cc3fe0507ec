import { stringify } from "yaml";

/** The plugin's archive. */
interface PluginArchive {
  /** Version of the release, without `v`. */
  readonly version: string;
  /** Address of the archive. */
  readonly uri: string;
  /** SHA-256 of the archive, in hexadecimal. */
  readonly sha256: string;
  /** Range of Node.js versions, as package.json has it. */
  readonly node: string;
}

/** Folder in the plugin's archive. */
export const PLUGIN_FOLDER = "legation";

/** Returns the manifest by which krew installs `kubectl legation`: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest. */
export function krewManifest({ version, uri, sha256, node }: PluginArchive): string {
  return stringify(
    {
      apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
      kind: "Plugin",
      metadata: { name: "legation" },
      spec: {
        version: `v${version}`,
        shortDescription: "Run pods and workloads in other clusters",
        description:
          "Installs Legation in a host cluster, joins member clusters to it, and shows where pods of the host run, why they " +
          "wait, and what a manifest would do.\n",
        caveats: `Needs Node.js ${node} on the PATH.\n`,
        // Windows runs no script by its first line.
        platforms: [
          {
            selector: { matchExpressions: [{ key: "os", operator: "In", values: ["darwin", "linux"] }] },
            uri,
            sha256,
            files: [{ from: `${PLUGIN_FOLDER}/*`, to: "." }],
            bin: "dist/src/cli/main.js",
          },
        ],
      },
    },
    { lineWidth: 120 },
  );
}
