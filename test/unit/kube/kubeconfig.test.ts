import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import { config, KubeconfigFolder, PEM, problemOf } from "./kubeconfigs.ts";

let files: KubeconfigFolder;
beforeEach(() => {
  files = new KubeconfigFolder();
});
afterEach(() => {
  vi.useRealTimers();
  files.remove();
});

describe("the sources of credentials", () => {
  test("begin with a file that is named", () => {
    const kubeconfig = files.write("named", config());
    const env = { KUBECONFIG: "/nowhere", HOME: files.folder };
    expect(loadKubeConfig({ kubeconfig, env })).toMatchObject({
      server: "https://10.0.0.1:6443",
      source: `${kubeconfig} (context west)`,
      insecureSkipTlsVerify: false,
    });
  });

  test("are merged from KUBECONFIG's files: the first wins, missing ones are skipped", () => {
    const first = files.write("first", { ...config({ user: { token: "one" } }), "current-context": "" });
    const second = config({ cluster: { server: "https://second" }, user: { token: "two" } });
    const other = config({ name: "east", cluster: { server: "https://east" }, user: { token: "three" } });
    const KUBECONFIG = [
      join(files.folder, "none"),
      first,
      files.write("second", second),
      files.write("other", other),
    ].join(":");
    expect(loadKubeConfig({ env: { KUBECONFIG } })).toMatchObject({ server: "https://10.0.0.1:6443" });
    const east = loadKubeConfig({ env: { KUBECONFIG }, context: "east" });
    expect([east.server, east.identity()]).toEqual(["https://east", { authorization: "Bearer three" }]);
  });

  test.each([
    ["is used when the file has it", {}, "https://east"],
    ["is left alone when the file lacks it", { preferredContext: "north" }, "https://10.0.0.1:6443"],
    ["gives way to the user's own choice", { context: "west" }, "https://10.0.0.1:6443"],
  ])("a preferred context %s", (_case, options, server) => {
    const other = files.write("other", config({ name: "east", cluster: { server: "https://east" } }));
    const env = { KUBECONFIG: `${files.write("first", config())}:${other}` };
    expect(loadKubeConfig({ env, preferredContext: "east", ...options }).server).toBe(server);
  });

  test("include ~/.kube/config when there is no KUBECONFIG", () => {
    mkdirSync(join(files.folder, ".kube"));
    files.write(".kube/config", config({ context: { namespace: "team" } }));
    expect(loadKubeConfig({ env: { HOME: files.folder } }).namespace).toBe("team");
  });

  test("include the pod's service account as the last, whose token is read again when it changes", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    for (const [name, text] of [
      ["token", "first\n"],
      ["ca.crt", PEM],
      ["namespace", "legation-system"],
    ] as const) {
      files.write(name, text);
    }
    const env = { HOME: "/nowhere", KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
    const credentials = loadKubeConfig({ env, serviceAccountFolder: files.folder });
    expect(credentials).toMatchObject({
      server: "https://[fd00::1]:443",
      namespace: "legation-system",
      source: files.folder,
    });
    expect(credentials.identity()).toEqual({ authorization: "Bearer first", ca: PEM });
    files.write("token", "second token");
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer first" });
    vi.advanceTimersByTime(5_000);
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer second token" });
    files.write("token", "third");
    credentials.refresh();
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer third" });
    rmSync(join(files.folder, "token"));
    credentials.refresh();
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer third" });
  });

  test("are named by the error when there is none", () => {
    const env = { HOME: files.folder };
    expect(problemOf(() => loadKubeConfig({ env, serviceAccountFolder: files.folder }))).toBe(
      `kubeconfig: there is none at ${files.folder}/.kube/config, and neither --kubeconfig nor KUBECONFIG names one`,
    );
  });
});

describe("a proxy of the environment", () => {
  const env = { HTTPS_PROXY: "http://near:3128" };

  test("is used where the kubeconfig names none, and is not handed to others", () => {
    const credentials = loadKubeConfig({ kubeconfig: files.write("c", config()), env });
    expect(credentials).toMatchObject({ environmentProxyUrl: "http://near:3128" });
    expect(credentials.proxyUrl).toBeUndefined();
    const cluster = { "proxy-url": "http://own:3128" };
    const named = loadKubeConfig({ kubeconfig: files.write("c", config({ cluster })), env });
    expect(named).toMatchObject({ proxyUrl: "http://own:3128" });
    expect(named.environmentProxyUrl).toBeUndefined();
  });

  test("is used for stored kubeconfigs, too", () => {
    const credentials = credentialsFromKubeconfigText(stringify(config()), { allowExec: false, env });
    expect(credentials).toMatchObject({ environmentProxyUrl: "http://near:3128" });
  });
});
