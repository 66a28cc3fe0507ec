import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ExecPlugin } from "../../../../src/kube/internal/exec-plugin.ts";
import { loadKubeConfig } from "../../../../src/kube/kubeconfig.ts";
import { config, KubeconfigFolder, type Parts } from "../kubeconfigs.ts";

let files: KubeconfigFolder;
beforeEach(() => {
  files = new KubeconfigFolder();
});
afterEach(() => {
  vi.useRealTimers();
  files.remove();
});

describe("an exec plugin", () => {
  /** A plugin that counts its runs and answers with `status`. */
  function plugin(status: object, more: object = {}): Parts {
    const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status };
    const text = JSON.stringify(credential)
      .replaceAll("%COUNT%", "'$(wc -l < runs)'")
      .replaceAll(/\$[A-Z]+/g, (variable) => `'"${variable}"'`);
    files.write(
      "plugin",
      `#!/bin/sh\ncd "$(dirname "$0")"\necho "$KUBERNETES_EXEC_INFO $EXTRA $*" >> runs\necho '${text}'\n`,
    );
    chmodSync(join(files.folder, "plugin"), 0o755);
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "./plugin", ...more };
    return { user: { exec } };
  }
  const load = (parts: Parts, env: Readonly<Record<string, string>> = {}): ReturnType<typeof loadKubeConfig> =>
    loadKubeConfig({ kubeconfig: files.write("c", config(parts)), env });

  test("runs once for many requests, with its arguments, environment and the cluster", async () => {
    const more = { args: ["get", "token"], env: [{ name: "EXTRA", value: "more" }], provideClusterInfo: true };
    const { identity } = load(plugin({ token: "run-%COUNT%" }, more));
    expect(await Promise.all([identity(), identity()])).toEqual(Array(2).fill({ authorization: "Bearer run-1" }));
    expect(identity()).toEqual({ authorization: "Bearer run-1" });
    const { readFileSync } = await import("node:fs");
    const [info, rest] = readFileSync(join(files.folder, "runs"), "utf8").split(/(?<=\}) more /);
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
    files.write("ca.pem", pem);
    const extension = { audience: "west" };
    const cluster = {
      "certificate-authority": "ca.pem",
      extensions: [{ name: "client.authentication.k8s.io/exec", extension }],
    };
    await load({ ...plugin({ token: "t" }, { provideClusterInfo: true }), cluster }).identity();
    const { readFileSync } = await import("node:fs");
    expect(JSON.parse(readFileSync(join(files.folder, "runs"), "utf8")).spec.cluster).toEqual({
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
      const survived = join(files.folder, "survived");
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
