import { describe, expect, test } from "vitest";
import type { Container, Pod, Volume } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { type ApiAccess, apiChoice, type HomeApi, mountsApiSecret, wantedTokens } from "../../../src/pods/home-api.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };
const address = { host: "10.0.0.1", port: "6443" };
const home: ApiAccess = { mode: "host", address };
const SECRET = "legation-api-uid-1";

const namespaceSource = {
  downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] },
};
// The volume of the ServiceAccount admission plugin.
const automounted: Volume = {
  name: "kube-api-access-x2x4z",
  projected: {
    defaultMode: 420,
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      namespaceSource,
    ],
  },
};
const authored: Volume = {
  name: "vault",
  projected: {
    sources: [
      { serviceAccountToken: { audience: "vault", expirationSeconds: 600, path: "vault-token" } },
      { secret: { name: "own" } },
    ],
  },
};
const data: Volume = { name: "data", emptyDir: {} };
const mounts = (...names: string[]): Pick<Container, "volumeMounts"> => ({
  volumeMounts: names.map((name) => ({ name, mountPath: `/${name}`, readOnly: true })),
});
const variables = [
  { name: "KUBERNETES_SERVICE_HOST", value: "10.0.0.1" },
  { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
  { name: "KUBERNETES_SERVICE_PORT_HTTPS", value: "6443" },
];

function delegate(access: ApiAccess, volumes: Volume[], container: Partial<Container> = {}): Pod {
  const names = volumes.map(({ name }) => name);
  const main: Container = { name: "main", ...mounts(...names), ...container };
  const init: Container = { name: "init", ...mounts(...names) };
  return toDelegate(proxyPod({ spec: { volumes, containers: [main], initContainers: [init] } }), host, access);
}

describe("a delegate with the host's API", () => {
  test("mounts token and authority from its Secret, with the volume's paths and modes", () => {
    const { spec } = delegate(home, [data, automounted]);
    expect(spec?.volumes).toEqual([
      data,
      {
        name: automounted.name,
        projected: {
          defaultMode: 420,
          sources: [
            { secret: { name: SECRET, items: [{ key: "token-0", path: "token" }] } },
            { secret: { name: SECRET, items: [{ key: "ca.crt", path: "ca.crt" }] } },
            namespaceSource,
          ],
        },
      },
    ]);
    expect(spec?.containers).toEqual([{ name: "main", ...mounts("data", automounted.name), env: variables }]);
    expect(spec?.initContainers).toEqual([{ name: "init", ...mounts("data", automounted.name), env: variables }]);
    expect(spec?.automountServiceAccountToken).toBe(false);
  });

  test("mounts the author's own tokens, too, each under its own key", () => {
    const { spec } = delegate(home, [automounted, authored]);
    expect(spec?.volumes?.[1]).toEqual({
      name: "vault",
      projected: {
        sources: [
          { secret: { name: SECRET, items: [{ key: "token-1", path: "vault-token" }] } },
          { secret: { name: "own" } },
        ],
      },
    });
    expect(wantedTokens({ spec: { containers: [], volumes: [automounted, authored] } })).toEqual([
      { key: "token-0", expirationSeconds: 3607 },
      { key: "token-1", audience: "vault", expirationSeconds: 600 },
    ]);
  });

  test.each([
    ["for the one user of its containers", { securityContext: { runAsUser: 7 } }, 0o400, 0o444],
    ["for root", {}, 0o400, undefined],
    ["for root, who is named", { securityContext: { runAsUser: 0 } }, 0o644, 0o600],
    [
      "for several users",
      { securityContext: { runAsUser: 7 }, initContainers: [{ name: "init", securityContext: { runAsUser: 8 } }] },
      0o400,
      undefined,
    ],
    // The kubelet gives it to the group then, and makes it 0640.
    ["for a group", { securityContext: { runAsUser: 7, fsGroup: 7 } }, 0o644, 0o600],
    ["for all", { securityContext: { runAsUser: 7 } }, 0o644, undefined],
  ])("lets its pod read the token %s", (_case, spec, defaultMode, mode) => {
    const volume: Volume = { name: "t", projected: { defaultMode, sources: [{ serviceAccountToken: { path: "t" } }] } };
    const proxy = proxyPod({ spec: { containers: [{ name: "main", ...mounts("t") }], volumes: [volume], ...spec } });
    const [made] = toDelegate(proxy, host, home).spec?.volumes ?? [];
    const item = { key: expect.any(String), path: "t", ...(mode === undefined ? {} : { mode }) };
    expect(made?.projected).toEqual({ defaultMode, sources: [{ secret: { name: SECRET, items: [item] } }] });
  });

  test("has the host's authority wherever the author mounted it", () => {
    const { spec } = delegate(home, [
      automounted,
      { name: "ca", configMap: { name: "kube-root-ca.crt", defaultMode: 256, optional: true } },
      { name: "all", projected: { sources: [{ configMap: { name: "kube-root-ca.crt", optional: true } }] } },
      { name: "other", configMap: { name: "other" } },
    ]);
    const items = [{ key: "ca.crt", path: "ca.crt" }];
    expect(spec?.volumes?.slice(1)).toEqual([
      { name: "ca", secret: { secretName: SECRET, items, defaultMode: 256, optional: true } },
      { name: "all", projected: { sources: [{ secret: { name: SECRET, items, optional: true } }] } },
      { name: "other", configMap: { name: "other" } },
    ]);
  });

  test("has the host's authority in variables of the author", () => {
    const reference = { name: "kube-root-ca.crt", key: "ca.crt", optional: true };
    const other = { name: "LEVEL", valueFrom: { configMapKeyRef: { name: "settings", key: "level" } } };
    const env = [{ name: "CA", valueFrom: { configMapKeyRef: reference } }, other];
    const { spec } = delegate(home, [automounted], { env });
    const ours = { name: "CA", valueFrom: { secretKeyRef: { ...reference, name: SECRET } } };
    expect(spec?.containers[0]?.env).toEqual([...variables, ours, other]);
    const inMember = delegate({ mode: "member" }, [automounted], { env });
    expect(inMember.spec?.containers[0]?.env).toEqual(env);
  });

  test("keeps a projected volume with null sources", () => {
    const empty: Volume = JSON.parse('{"name": "empty", "projected": {"sources": null, "defaultMode": 420}}');
    for (const access of [home, { mode: "member" }, { mode: "none" }] as const) {
      expect(delegate(access, [empty]).spec?.volumes).toEqual([empty]);
    }
  });

  test("keeps the author's address, and puts the others before the author's variables", () => {
    const env = [{ name: "KUBERNETES_SERVICE_HOST", value: "gateway" }];
    const { spec } = delegate(home, [automounted], { env });
    expect(spec?.containers[0]?.env).toEqual([variables[1], variables[2], ...env]);
  });

  const aliases = [{ ip: "10.1.1.1", hostnames: ["db"] }];
  const own = [{ ip: "10.1.1.1", hostnames: ["kubernetes.default.svc"] }];
  const names = ["kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
  test.each([
    ["an address at port 443", { host: "10.0.0.1", port: "443" }, undefined, [{ ip: "10.0.0.1", hostnames: names }]],
    ["an IPv6 address", { host: "fd00::1", port: "443" }, aliases, [...aliases, { ip: "fd00::1", hostnames: names }]],
    ["an address at another port: not", { host: "10.0.0.1", port: "6443" }, aliases, aliases],
    ["a name: not", { host: "host.example", port: "443" }, undefined, undefined],
    [
      "the address of an agent's Service",
      { host: "kubernetes.default.svc", port: "443", ip: "10.96.7.7" },
      undefined,
      [{ ip: "10.96.7.7", hostnames: names }],
    ],
    ["an address, unless the author has one", { host: "10.0.0.1", port: "443" }, own, own],
  ])("finds the host by its Service's name, too, at %s", (_, at, hostAliases, expected) => {
    const spec = { volumes: [automounted], ...(hostAliases === undefined ? {} : { hostAliases }) };
    const made = toDelegate(proxyPod({ spec }), host, { mode: "host", address: at });
    expect(made.spec?.hostAliases).toEqual(expected);
  });

  test("is recognised by the Secret that it mounts", () => {
    expect(mountsApiSecret(delegate(home, [automounted]), "uid-1")).toBe(true);
    expect(mountsApiSecret(delegate(home, [authored]), "uid-1")).toBe(true);
    const authority: Volume = { name: "ca", configMap: { name: "kube-root-ca.crt" } };
    expect(mountsApiSecret(delegate(home, [authority]), "uid-1")).toBe(true);
    expect(mountsApiSecret(delegate(home, [automounted]), "uid-2")).toBe(false);
    expect(mountsApiSecret(delegate({ mode: "member" }, [automounted]), "uid-1")).toBe(false);
  });
});

test("gives a delegate with its author's token Secret the host's address, and keeps its volume", () => {
  const volume: Volume = { name: "exec-sa-token", secret: { secretName: "executor-token" } };
  const { spec } = delegate(home, [volume]);
  expect(spec?.volumes).toEqual([volume]);
  expect(spec?.containers[0]?.env).toEqual(variables);
  expect(spec?.automountServiceAccountToken).toBe(false);
});

describe("a delegate with the member's API", () => {
  test("leaves token mounts to the member's admission, and keeps the author's volumes", () => {
    const { spec } = delegate({ mode: "member" }, [automounted, authored, data]);
    expect(spec?.volumes).toEqual([authored, data]);
    expect(spec?.containers).toEqual([{ name: "main", ...mounts("vault", "data") }]);
    expect(spec).not.toHaveProperty("automountServiceAccountToken");
  });

  test("keeps all else, and an author's volume named like admission's", () => {
    const cache: Volume = { name: "kube-api-access-cache", emptyDir: {} };
    const rest = { nodeSelector: { disk: "ssd" }, terminationGracePeriodSeconds: 5 };
    for (const mode of ["member", "none"] as const) {
      const proxy = proxyPod({ spec: { ...rest, volumes: [automounted, cache] } });
      expect(toDelegate(proxy, host, { mode }).spec).toMatchObject({ ...rest, volumes: [cache] });
    }
  });
});

describe("a delegate without an API", () => {
  test("has no token, and no volumes and mounts that are left empty", () => {
    const only: Volume = { name: "only", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } };
    const secret: Volume = { name: "vault", projected: { ...authored.projected, defaultMode: 256 } };
    const { spec } = delegate({ mode: "none" }, [automounted, secret, only, data]);
    const left = { defaultMode: 256, sources: [{ secret: { name: "own" } }] };
    expect(spec?.volumes).toEqual([{ name: "vault", projected: left }, data]);
    expect(spec?.containers).toEqual([{ name: "main", ...mounts("vault", "data") }]);
    expect(spec?.automountServiceAccountToken).toBe(false);
  });

  test("equals its proxy if that has no volumes", () => {
    const { spec } = toDelegate(proxyPod(), host, { mode: "none" });
    expect(spec).toEqual({ containers: [{ name: "main", image: "busybox" }], automountServiceAccountToken: false });
  });
});

describe("the API server of a pod", () => {
  const known: HomeApi = { state: "known", address };
  const unknown: HomeApi = { state: "unknown", message: "set it" };
  const pending: HomeApi = { state: "pending", message: "wait" };
  const withToken = proxyPod({ spec: { volumes: [automounted] } });
  const without = proxyPod({ spec: { volumes: [data] } });
  const mounting = proxyPod({ spec: { volumes: [data], containers: [{ name: "main", ...mounts("data") }] } });
  const secretVolume: Volume = { name: "exec-sa-token", secret: { secretName: "executor-token" } };
  const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount/";
  const withSecret = proxyPod({
    spec: {
      volumes: [secretVolume],
      containers: [{ name: "main", volumeMounts: [{ name: secretVolume.name, mountPath }] }],
    },
  });
  const none = { access: { mode: "none" } };
  test.each([
    ["is the host's", withToken, undefined, known, { access: home }],
    ["is the host's by its annotation", withToken, "host", known, { access: home }],
    ["is none if the host's address is not known", withToken, undefined, unknown, none],
    ["is refused if the host is required and its address not known", withToken, "host", unknown, { refusal: "set it" }],
    ["is pending while the address is being detected", withToken, undefined, pending, { refusal: "wait" }],
    ["is the member's by its annotation", withToken, "member", pending, { access: { mode: "member" } }],
    ["is none by its annotation", withToken, "none", known, none],
    ["is none without a mounted token", without, undefined, pending, none],
    ["is none without a mounted token, though the host's address is known", mounting, undefined, known, none],
    ["is none without a mounted token, despite its annotation", without, "host", unknown, none],
    [
      "is the host's by annotation, for a pod that may read a token from elsewhere",
      without,
      "host",
      known,
      { access: home },
    ],
    [
      "is the host's for a pod that mounts a token Secret where tokens are",
      withSecret,
      undefined,
      known,
      { access: home },
    ],
    ["is waited for, for such a pod, too", withSecret, undefined, pending, { refusal: "wait" }],
  ] as const)("%s", (_, pod, mode, way, choice) => {
    expect(apiChoice(pod, mode, way)).toEqual(choice);
  });
});
