import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { stringify } from "yaml";
import { isKubeError } from "../../../src/kube/errors.ts";
import { ExecPlugin } from "../../../src/kube/internal/exec-plugin.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import { tokenClaims } from "../../../src/kube/service-account-token.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "legation-kubeconfig-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly name?: string;
}

/** A kubeconfig with one context, cluster and user, all of one name. */
function config({ cluster = {}, user = { token: "t" }, context = {}, name = "west" }: Parts = {}): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: "https://10.0.0.1:6443/", ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
    "current-context": name,
  };
}

function write(name: string, content: object | string): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : stringify(content));
  return path;
}

/** The message of the error that `load` throws. */
function problemOf(load: () => unknown): string {
  try {
    load();
  } catch (error) {
    if (isKubeError(error, "BadCredentials")) return `${error.resource}: ${error.detail}`;
    throw error;
  }
  throw new Error("expected an error");
}

describe("the sources of credentials", () => {
  test("begin with a file that is named", () => {
    const kubeconfig = write("named", config());
    const env = { KUBECONFIG: "/nowhere", HOME: folder };
    expect(loadKubeConfig({ kubeconfig, env })).toMatchObject({
      server: "https://10.0.0.1:6443",
      source: `${kubeconfig} (context west)`,
      insecureSkipTlsVerify: false,
    });
  });

  test("are merged from KUBECONFIG's files: the first wins, missing ones are skipped", () => {
    const first = write("first", { ...config({ user: { token: "one" } }), "current-context": "" });
    const second = config({ cluster: { server: "https://second" }, user: { token: "two" } });
    const other = config({ name: "east", cluster: { server: "https://east" }, user: { token: "three" } });
    const KUBECONFIG = [join(folder, "none"), first, write("second", second), write("other", other)].join(":");
    expect(loadKubeConfig({ env: { KUBECONFIG } })).toMatchObject({ server: "https://10.0.0.1:6443" });
    const east = loadKubeConfig({ env: { KUBECONFIG }, context: "east" });
    expect([east.server, east.identity()]).toEqual(["https://east", { authorization: "Bearer three" }]);
  });

  test.each([
    ["is used when the file has it", {}, "https://east"],
    ["is left alone when the file lacks it", { preferredContext: "north" }, "https://10.0.0.1:6443"],
    ["gives way to the user's own choice", { context: "west" }, "https://10.0.0.1:6443"],
  ])("a preferred context %s", (_case, options, server) => {
    const other = write("other", config({ name: "east", cluster: { server: "https://east" } }));
    const env = { KUBECONFIG: `${write("first", config())}:${other}` };
    expect(loadKubeConfig({ env, preferredContext: "east", ...options }).server).toBe(server);
  });

  test("include ~/.kube/config when there is no KUBECONFIG", () => {
    mkdirSync(join(folder, ".kube"));
    write(".kube/config", config({ context: { namespace: "team" } }));
    expect(loadKubeConfig({ env: { HOME: folder } }).namespace).toBe("team");
  });

  test("include the pod's service account as the last, whose token is read again when it changes", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    for (const [name, text] of [
      ["token", "first\n"],
      ["ca.crt", PEM],
      ["namespace", "legation-system"],
    ] as const) {
      write(name, text);
    }
    const env = { HOME: "/nowhere", KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
    const credentials = loadKubeConfig({ env, serviceAccountFolder: folder });
    expect(credentials).toMatchObject({
      server: "https://[fd00::1]:443",
      namespace: "legation-system",
      source: folder,
    });
    expect(credentials.identity()).toEqual({ authorization: "Bearer first", ca: PEM });
    write("token", "second token");
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer first" });
    vi.advanceTimersByTime(5_000);
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer second token" });
    write("token", "third");
    credentials.refresh();
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer third" });
    rmSync(join(folder, "token"));
    credentials.refresh();
    expect(credentials.identity()).toMatchObject({ authorization: "Bearer third" });
  });

  test("are named by the error when there is none", () => {
    const env = { HOME: folder };
    expect(problemOf(() => loadKubeConfig({ env, serviceAccountFolder: folder }))).toBe(
      `kubeconfig: there is none at ${folder}/.kube/config, and neither --kubeconfig nor KUBECONFIG names one`,
    );
  });
});

describe("identities", () => {
  const identityOf = (parts: Parts): unknown =>
    loadKubeConfig({ kubeconfig: write("c", config(parts)), env: {} }).identity();

  test("impersonation carries extra fields under valid header names", () => {
    const user = {
      token: "t",
      as: "jane",
      "as-user-extra": { "example.com/scope": ["a", "b"], "in (x)": ["c"], none: [] },
    };
    expect(identityOf({ user })).toEqual({
      authorization: "Bearer t",
      headers: {
        "impersonate-user": "jane",
        "impersonate-extra-example.com%2Fscope": ["a", "b"],
        "impersonate-extra-in%20%28x%29": ["c"],
      },
    });
  });

  test.each<[string, unknown]>([
    ["as-uid", "7"],
    ["as-groups", ["a"]],
    ["as-user-extra", { scope: ["a"] }],
  ])("%s without a user to impersonate is refused", (field, value) => {
    expect(problemOf(() => identityOf({ user: { token: "t", [field]: value } }))).toContain(
      `users[west].${field}: impersonates nobody; write the user as \`as\`, or remove it`,
    );
  });

  test.each<[string, Parts, object]>([
    ["a token", { user: { token: "abc" } }, { authorization: "Bearer abc" }],
    ["a name and password", { user: { username: "u", password: "p" } }, { authorization: `Basic ${base64("u:p")}` }],
    [
      "a client certificate",
      { user: { "client-certificate-data": base64(PEM), "client-key-data": base64(PEM) } },
      { cert: PEM, key: PEM },
    ],
    [
      "an authority",
      { cluster: { "certificate-authority-data": base64(PEM) } },
      { authorization: "Bearer t", ca: PEM },
    ],
    [
      "impersonation",
      { user: { token: "t", as: "jane", "as-uid": "7", "as-groups": ["a", "b"] } },
      {
        authorization: "Bearer t",
        headers: { "impersonate-user": "jane", "impersonate-uid": "7", "impersonate-group": ["a", "b"] },
      },
    ],
    ["nobody", { user: {}, context: { user: "" } }, {}],
  ])("%s", (_case, parts, expected) => {
    expect(identityOf(parts)).toEqual(expected);
  });

  test("file names are relative to the kubeconfig, and a token file wins over a token", () => {
    write("token", "from the file\n");
    write("ca.pem", PEM);
    expect(
      identityOf({ cluster: { "certificate-authority": "ca.pem" }, user: { token: "t", tokenFile: "./token" } }),
    ).toEqual({
      authorization: "Bearer from the file",
      ca: PEM,
    });
  });

  test("reads TLS server name, proxy and insecure", () => {
    const cluster = { "tls-server-name": "api", "proxy-url": "http://proxy:3128", "insecure-skip-tls-verify": true };
    expect(loadKubeConfig({ kubeconfig: write("c", config({ cluster })), env: {} })).toMatchObject({
      tlsServerName: "api",
      proxyUrl: "http://proxy:3128",
      insecureSkipTlsVerify: true,
    });
  });
});

describe("a proxy of the environment", () => {
  const env = { HTTPS_PROXY: "http://near:3128" };

  test("is used where the kubeconfig names none, and is not handed to others", () => {
    const credentials = loadKubeConfig({ kubeconfig: write("c", config()), env });
    expect(credentials).toMatchObject({ environmentProxyUrl: "http://near:3128" });
    expect(credentials.proxyUrl).toBeUndefined();
    const cluster = { "proxy-url": "http://own:3128" };
    const named = loadKubeConfig({ kubeconfig: write("c", config({ cluster })), env });
    expect(named).toMatchObject({ proxyUrl: "http://own:3128" });
    expect(named.environmentProxyUrl).toBeUndefined();
  });

  test("is used for stored kubeconfigs, too", () => {
    const credentials = credentialsFromKubeconfigText(stringify(config()), { allowExec: false, env });
    expect(credentials).toMatchObject({ environmentProxyUrl: "http://near:3128" });
  });
});

describe("the error of an unusable field", () => {
  test.each<[string, object | string, string]>([
    ["text that is not YAML", "a: [", "not YAML: see line 1, column 5"],
    ["a list", "- a", "Invalid input: expected object"],
    ["no context", { ...config(), "current-context": "" }, "current-context is not set; name a context with --context"],
    ["an unknown context", { ...config(), "current-context": "x" }, "no context x; it has west"],
    ["an unknown cluster", config({ context: { cluster: "x" } }), "contexts[west].cluster: no cluster x; it has west"],
    ["an unknown user", config({ context: { user: "x" } }), "contexts[west].user: no user x; it has west"],
    [
      "no server",
      config({ cluster: { server: null } }),
      "clusters[0].cluster.server: write the API server's URL, e.g. \"https",
    ],
    [
      "a server without scheme",
      config({ cluster: { server: "10.0.0.1" } }),
      "clusters[0].cluster.server: write a URL that starts",
    ],
    ["a number as token", config({ user: { token: 7 } }), "users[0].user.token: Invalid input: expected string"],
    [
      "data that is not base64 of a PEM",
      config({ cluster: { "certificate-authority-data": "!" } }),
      "clusters[west].certificate-authority-data: not base64 of a PEM; write the output of `base64 -w0 FILE`",
    ],
    [
      "a certificate without its key",
      config({ user: { "client-certificate-data": base64(PEM) } }),
      "users[west]: client-certificate and client-key must be given together",
    ],
    [
      "an auth provider",
      config({ user: { "auth-provider": { name: "gcp" } } }),
      "users[west].auth-provider: not supported; use",
    ],
    [
      "an unknown proxy",
      config({ cluster: { "proxy-url": "ftp://p" } }),
      "clusters[west].proxy-url: not a proxy; write a URL with http",
    ],
    [
      "an authority beside insecure",
      config({ cluster: { "certificate-authority-data": base64(PEM), "insecure-skip-tls-verify": true } }),
      "clusters[west]: a certificate-authority with insecure-skip-tls-verify; remove one of them",
    ],
    [
      "an old exec version",
      config({ user: { exec: { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "x" } } }),
      'users[0].user.exec.apiVersion: write "client.authentication.k8s.io/v1"',
    ],
  ])("says what to write: %s", (_case, content, problem) => {
    const path = write("c", content);
    const message = problemOf(() => loadKubeConfig({ kubeconfig: path, env: {} }));
    expect(message).toContain(`${path}: `);
    expect(message).toContain(problem);
  });

  test.each([
    ["a reserved character", "password: @hunter2", "see line 3, column 15"],
    ["an alias that leads nowhere", "password: *hunter2", "see its aliases"],
    ["an escape that there is none of", 'password: "\\hunter2"', "see line 3, column "],
    ["a key that stands twice", "hunter2: a\n    hunter2: b", "see line 4, column 5"],
  ])("does not quote %s, which may be a password", (_case, line, place) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const text = `users:\n- user:\n    ${line}\n`;
    let problem: unknown;
    try {
      credentialsFromKubeconfigText(text, { allowExec: false, env: {} });
    } catch (error) {
      problem = error;
    }
    expect(problem).toMatchObject({ code: "BadCredentials", detail: expect.stringContaining(place) });
    expect(inspect(problem)).not.toContain("hunter2");
    expect(warned).not.toHaveBeenCalled();
  });

  test("comes without a warning that quotes a password like a YAML tag", () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const text = stringify(config({ user: { token: "t", password: "PASSWORD" } })).replace("PASSWORD", "!hunter2 x");
    expect(() => credentialsFromKubeconfigText(text, { allowExec: false, env: {} })).not.toThrow();
    expect(tokenClaims(text)).toBeUndefined();
    expect(warned).not.toHaveBeenCalled();
  });

  test.each([
    ["a proxy", { "proxy-url": "socks4://me:hunter2@proxy:1080" }],
    ["a server", { server: "https://me:hunter2@10.0.0.1:six" }],
  ])("does not quote the password of %s", (_whose, cluster) => {
    expect(problemOf(() => loadKubeConfig({ kubeconfig: write("c", config({ cluster })), env: {} }))).not.toContain(
      "hunter2",
    );
  });

  test("does not appear for entries that its context does not name, as in kubectl", () => {
    const content = config({ user: { token: "abc" } }) as { clusters: object[]; users: object[] };
    const old = { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "aws" };
    content.users.push({ name: "old", user: { exec: old } });
    content.clusters.push({ name: "old", cluster: { server: "" } });
    expect(loadKubeConfig({ kubeconfig: write("c", content), env: {} }).identity()).toEqual({
      authorization: "Bearer abc",
    });
  });

  test("names a missing file", () => {
    expect(problemOf(() => loadKubeConfig({ kubeconfig: "/nowhere/x", env: {} }))).toContain(
      "/nowhere/x: there is no such file",
    );
    expect(problemOf(() => loadKubeConfig({ env: { KUBECONFIG: "/nowhere/x" } }))).toContain("there is no such file");
  });

  test("names a missing token file", () => {
    const path = write("c", config({ user: { tokenFile: "none" } }));
    const { identity } = loadKubeConfig({ kubeconfig: path, env: {} });
    expect(problemOf(identity)).toContain(`users[west].tokenFile: cannot read ${folder}/none: ENOENT`);
  });
});

describe("a kubeconfig from a Secret", () => {
  const load = (parts: Parts): unknown =>
    credentialsFromKubeconfigText(stringify(config(parts)), {
      allowExec: false,
      env: {},
      source: "Secret a/b",
    }).identity();

  test("is used when it contains everything", () => {
    expect(load({ user: { token: "abc" } })).toEqual({ authorization: "Bearer abc" });
  });

  test.each<[string, Parts, string]>([
    [
      "an exec plugin",
      { user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "x" } } },
      "users[west].exec: a stored kubeconfig must not run a program here; write a token or a client certificate",
    ],
    ["a token file", { user: { tokenFile: "/var/run/token" } }, "users[west].tokenFile: names a file of this machine"],
    [
      "a key file",
      { user: { "client-certificate": "/c", "client-key": "/k" } },
      "users[west].client-certificate: names a file",
    ],
    [
      "an authority file",
      { cluster: { "certificate-authority": "/c" } },
      "clusters[west].certificate-authority: names a file",
    ],
  ])("may not name %s", (_case, parts, problem) => {
    const message = problemOf(() => load(parts));
    expect(message).toContain("Secret a/b: ");
    expect(message).toContain(problem);
  });
});

describe("an exec plugin", () => {
  /** A plugin that counts its runs and answers with `status`. */
  function plugin(status: object, more: object = {}): Parts {
    const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status };
    const text = JSON.stringify(credential)
      .replaceAll("%COUNT%", "'$(wc -l < runs)'")
      .replaceAll(/\$[A-Z]+/g, (variable) => `'"${variable}"'`);
    write(
      "plugin",
      `#!/bin/sh\ncd "$(dirname "$0")"\necho "$KUBERNETES_EXEC_INFO $EXTRA $*" >> runs\necho '${text}'\n`,
    );
    chmodSync(join(folder, "plugin"), 0o755);
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./plugin", ...more };
    return { user: { exec } };
  }
  const load = (parts: Parts, env: Readonly<Record<string, string>> = {}): ReturnType<typeof loadKubeConfig> =>
    loadKubeConfig({ kubeconfig: write("c", config(parts)), env });

  test("runs once for many requests, with its arguments, environment and the cluster", async () => {
    const more = { args: ["get", "token"], env: [{ name: "EXTRA", value: "more" }], provideClusterInfo: true };
    const { identity } = load(plugin({ token: "run-%COUNT%" }, more));
    expect(await Promise.all([identity(), identity()])).toEqual(Array(2).fill({ authorization: "Bearer run-1" }));
    expect(identity()).toEqual({ authorization: "Bearer run-1" });
    const { readFileSync } = await import("node:fs");
    const [info, rest] = readFileSync(join(folder, "runs"), "utf8").split(/(?<=\}) more /);
    expect(JSON.parse(info ?? "")).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      spec: {
        interactive: false,
        cluster: { server: "https://10.0.0.1:6443/", "insecure-skip-tls-verify": false },
      },
    });
    expect(rest).toBe("get token\n");
  });

  test("gets the loader's environment, extended by the kubeconfig", async () => {
    const more = { env: [{ name: "ADDED", value: "more" }] };
    const status = { token: "$REGION $ADDED $HOME" };
    const { identity } = load(plugin(status, more), { REGION: "eu", ADDED: "less" });
    expect(await identity()).toEqual({ authorization: "Bearer eu more " });
  });

  test("gets a CA from a file, and its configuration from the cluster's entry", async () => {
    const pem = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----";
    write("ca.pem", pem);
    const extension = { audience: "west" };
    const cluster = {
      "certificate-authority": "ca.pem",
      extensions: [{ name: "client.authentication.k8s.io/exec", extension }],
    };
    await load({ ...plugin({ token: "t" }, { provideClusterInfo: true }), cluster }).identity();
    const { readFileSync } = await import("node:fs");
    expect(JSON.parse(readFileSync(join(folder, "runs"), "utf8")).spec.cluster).toEqual({
      server: "https://10.0.0.1:6443/",
      "insecure-skip-tls-verify": false,
      "certificate-authority-data": btoa(pem),
      config: extension,
    });
  });

  describe("whose child processes do not end", () => {
    const answer = JSON.stringify({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "t" },
    });
    const pluginOf = (script: string, timeoutMs = 3_000): ExecPlugin =>
      new ExecPlugin(
        { apiVersion: "client.authentication.k8s.io/v1", command: "sh", args: ["-c", script] },
        { cluster: () => ({}), source: "test", env: {}, times: { timeoutMs, outputMs: 100 } },
      );

    test("fails in time when a child process hangs, and leaves none running", async () => {
      const survived = join(folder, "survived");
      const run = pluginOf(`(sleep 5; touch ${survived}) | cat`, 1_000).identity();
      await expect(run).rejects.toMatchObject({
        code: "BadCredentials",
        detail: expect.stringContaining("sh did not end within 1 s"),
      });
      await sleep(5_000);
      expect(existsSync(survived)).toBe(false);
    });

    test("succeeds when a child process holds its output open", async () => {
      expect(await pluginOf(`sleep 2 & echo '${answer}'`).identity()).toEqual({ authorization: "Bearer t" });
    });
  });

  test("runs again after its credential expired, and after a 401", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2024-01-01T00:00:00Z") });
    const { identity, refresh } = load(plugin({ token: "run-%COUNT%", expirationTimestamp: "2024-01-01T01:00:00Z" }));
    expect(await identity()).toEqual({ authorization: "Bearer run-1" });
    vi.setSystemTime(Date.parse("2024-01-01T00:59:59Z"));
    expect(await identity()).toEqual({ authorization: "Bearer run-1" });
    vi.setSystemTime(Date.parse("2024-01-01T01:00:00Z"));
    expect(await identity()).toEqual({ authorization: "Bearer run-2" });
    vi.setSystemTime(Date.parse("2024-01-01T00:30:00Z"));
    refresh();
    expect(await identity()).toEqual({ authorization: "Bearer run-3" });
  });

  test("may return a client certificate", async () => {
    const { identity } = load(plugin({ clientCertificateData: "cert", clientKeyData: "key" }));
    expect(await identity()).toEqual({ cert: "cert", key: "key" });
  });

  test.each<[string, () => Parts, string]>([
    [
      "gives nothing",
      () => plugin({}),
      "answered neither status.token nor status.clientCertificateData with clientKeyData",
    ],
    [
      "does not exist",
      () => ({ user: { exec: { ...exec("no-such-plugin"), installHint: "get it" } } }),
      "no-such-plugin could not be started",
    ],
    [
      "fails",
      () => ({ user: { exec: { ...exec("sh"), args: ["-c", "echo log in first >&2; exit 3"] } } }),
      "sh ended with exit code 3: log in first",
    ],
    [
      "writes nonsense",
      () => ({ user: { exec: { ...exec("echo"), args: ["s3cret"] } } }),
      "did not write an ExecCredential as JSON",
    ],
  ])("that %s is an error that says so", async (_case, parts, problem) => {
    const identity = load(parts()).identity();
    await expect(identity).rejects.toMatchObject({ code: "BadCredentials", detail: expect.stringContaining(problem) });
    await expect(identity).rejects.not.toMatchObject({ detail: expect.stringContaining("s3cret") });
  });

  function exec(command: string): object {
    return { apiVersion: "client.authentication.k8s.io/v1", command };
  }
});
