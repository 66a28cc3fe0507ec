import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { stringify } from "yaml";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../../../src/kube/kubeconfig.ts";
import { tokenClaims } from "../../../../src/kube/service-account-token.ts";
import { config, KubeconfigFolder, type Parts, PEM, problemOf } from "../kubeconfigs.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
let files: KubeconfigFolder;
beforeEach(() => {
  files = new KubeconfigFolder();
});
afterEach(() => {
  files.remove();
});

describe("identities", () => {
  const identityOf = (parts: Parts): unknown =>
    loadKubeConfig({ kubeconfig: files.write("c", config(parts)), env: {} }).identity();

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
    files.write("token", "from the file\n");
    files.write("ca.pem", PEM);
    expect(
      identityOf({ cluster: { "certificate-authority": "ca.pem" }, user: { token: "t", tokenFile: "./token" } }),
    ).toEqual({
      authorization: "Bearer from the file",
      ca: PEM,
    });
  });

  test("reads TLS server name, proxy and insecure", () => {
    const cluster = { "tls-server-name": "api", "proxy-url": "http://proxy:3128", "insecure-skip-tls-verify": true };
    expect(loadKubeConfig({ kubeconfig: files.write("c", config({ cluster })), env: {} })).toMatchObject({
      tlsServerName: "api",
      proxyUrl: "http://proxy:3128",
      insecureSkipTlsVerify: true,
    });
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
    const path = files.write("c", content);
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
    expect(
      problemOf(() => loadKubeConfig({ kubeconfig: files.write("c", config({ cluster })), env: {} })),
    ).not.toContain("hunter2");
  });

  test("does not appear for entries that its context does not name, as in kubectl", () => {
    const content = config({ user: { token: "abc" } }) as { clusters: object[]; users: object[] };
    const old = { apiVersion: "client.authentication.k8s.io/v1alpha1", command: "aws" };
    content.users.push({ name: "old", user: { exec: old } });
    content.clusters.push({ name: "old", cluster: { server: "" } });
    expect(loadKubeConfig({ kubeconfig: files.write("c", content), env: {} }).identity()).toEqual({
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
    const path = files.write("c", config({ user: { tokenFile: "none" } }));
    const { identity } = loadKubeConfig({ kubeconfig: path, env: {} });
    expect(problemOf(identity)).toContain(`users[west].tokenFile: cannot read ${files.folder}/none: ENOENT`);
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
