import { describe, expect, test } from "vitest";
import type { PodSpec, Volume } from "../../../src/api/kubernetes.ts";
import {
  dependencyKey,
  dependencyKeys,
  dependencyRef,
  FAMILIES,
  namingField,
} from "../../../src/copies/named-by-pods.ts";
import { pod } from "../../support/builders/pod.ts";

function uses(spec: Partial<PodSpec>): string[] {
  return FAMILIES.dependencies
    .of(pod({ spec }))
    .map(({ kind, name, optional }) => `${kind} ${name}${optional ? " (optional)" : ""}`);
}

function volume(source: Partial<Volume>): Partial<PodSpec> {
  return { volumes: [{ name: "v", ...source }] };
}

const main = { name: "main", image: "busybox" };

describe("dependencies of a pod", () => {
  test.each<[string, Partial<PodSpec>, string[]]>([
    ["nothing", {}, []],
    ["a ConfigMap volume", volume({ configMap: { name: "a" } }), ["ConfigMap a"]],
    ["an optional Secret volume", volume({ secret: { secretName: "a", optional: true } }), ["Secret a (optional)"]],
    [
      "sources of a projected volume",
      volume({ projected: { sources: [{ configMap: { name: "a" } }, { secret: { name: "b", optional: true } }] } }),
      ["ConfigMap a", "Secret b (optional)"],
    ],
    ["a driver's secret", volume({ csi: { driver: "d", nodePublishSecretRef: { name: "a" } } }), ["Secret a"]],
    ["an azureFile's secret", volume({ azureFile: { secretName: "a", shareName: "s" } }), ["Secret a"]],
    [
      "environment of a container",
      {
        containers: [
          {
            ...main,
            envFrom: [{ configMapRef: { name: "a" } }, { secretRef: { name: "b", optional: true } }],
            env: [
              { name: "C", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } },
              { name: "D", valueFrom: { secretKeyRef: { name: "d", key: "k", optional: true } } },
            ],
          },
        ],
      },
      ["ConfigMap a", "Secret b (optional)", "ConfigMap c", "Secret d (optional)"],
    ],
    [
      "environment of init and debug containers",
      {
        initContainers: [{ ...main, envFrom: [{ secretRef: { name: "a" } }] }],
        ephemeralContainers: [{ ...main, name: "debug", envFrom: [{ secretRef: { name: "b" } }] }],
      },
      ["Secret a", "Secret b"],
    ],
    ["its service account", { serviceAccountName: "worker" }, ["ServiceAccount worker"]],
    ["no default service account", { serviceAccountName: "default" }, []],
    ["pull secrets when they are there", { imagePullSecrets: [{ name: "a" }, {}] }, ["Secret a (optional)"]],
  ])("%s", (_, spec, expected) => {
    expect(uses(spec)).toEqual(expected);
  });

  test.each(["cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"])(
    "the secret of a %s",
    (type) => {
      expect(uses(volume({ [type]: { secretRef: { name: "a" } } }))).toEqual(["Secret a"]);
    },
  );

  test("lists each object once, required if any use requires it", () => {
    const spec: Partial<PodSpec> = {
      ...volume({ secret: { secretName: "a", optional: true } }),
      containers: [{ ...main, envFrom: [{ secretRef: { name: "a" } }] }],
      imagePullSecrets: [{ name: "a" }],
    };
    expect(uses(spec)).toEqual(["Secret a"]);
  });

  test("lists a Secret named like the ConfigMap of every namespace", () => {
    expect(uses(volume({ secret: { secretName: "kube-root-ca.crt" } }))).toEqual(["Secret kube-root-ca.crt"]);
  });

  test("reports a missing volume before a missing variable", () => {
    const spec: Partial<PodSpec> = {
      ...volume({ secret: { secretName: "a" } }),
      containers: [{ ...main, envFrom: [{ secretRef: { name: "a" } }] }],
    };
    expect(FAMILIES.dependencies.of(pod({ spec })).map(({ missing }) => missing.reason)).toEqual(["FailedMount"]);
  });

  test("ignores the token volume that admission adds", () => {
    const sources = [
      { serviceAccountToken: { path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef: { fieldPath: "metadata.namespace" } }] } },
    ];
    expect(uses({ volumes: [{ name: "kube-api-access-x7x7x", projected: { sources } }] })).toEqual([]);
  });
});

test.each<[string, Partial<PodSpec>, string, string]>([
  [
    "a volume",
    volume({ configMap: { name: "a" } }),
    "FailedMount",
    'MountVolume.SetUp failed for volume "v" : configmap "a" not found',
  ],
  [
    "a variable",
    { containers: [{ ...main, envFrom: [{ secretRef: { name: "a" } }] }] },
    "Failed",
    'Error: secret "a" not found',
  ],
  [
    "a service account",
    { serviceAccountName: "a" },
    "FailedMount",
    'failed to fetch token: serviceaccounts "a" not found',
  ],
])("reports a missing object of %s like the kubelet", (_, spec, reason, message) => {
  expect(FAMILIES.dependencies.of(pod({ spec }))[0]?.missing).toEqual({ reason, message });
});

test("explains that a Helm release Secret is never copied", () => {
  const [dependency] = FAMILIES.dependencies.of(
    pod({ spec: volume({ secret: { secretName: "sh.helm.release.v1.web.v1" } }) }),
  );
  expect(dependency?.missing.message).toContain("helm.sh/release.v1 are not copied");
});

test("converts a key back to its dependency", () => {
  const spec = { serviceAccountName: "worker" };
  const [key] = dependencyKeys(pod({ spec }));
  expect(key).toBe("ServiceAccount/team/worker");
  expect(key && dependencyKey(dependencyRef(key))).toBe(key);
});

test.each([
  ["ServiceAccount", "serviceAccountName"],
  ["PriorityClass", "priorityClassName"],
  ["RuntimeClass", "runtimeClassName"],
  ["Secret", undefined],
  ["ConfigMap", undefined],
] as const)("names the field of a pod for one %s", (kind, field) => {
  expect(namingField(kind)).toBe(field);
});
