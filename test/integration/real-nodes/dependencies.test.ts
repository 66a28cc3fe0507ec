import { beforeAll, expect, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { configMaps, persistentVolumeClaims, pods, secrets } from "../../../src/kube/resources.ts";
import { uniqueName } from "../../support/delegated/unique-name.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually } from "../../support/harness/wait.ts";

// A kubelet updates mounted ConfigMaps about once a minute.
const patient = { timeoutMs: 170_000 };
const SAYS = `trap 'exit 0' TERM
echo "$COLOR $USER_NAME $ALL_password $ABSENT|"
cat /files/greeting /files/deep/user; echo; stat -L -c %a /files/deep/user
while true; do cat /files/greeting; sleep 1; done`;

function reader(namespace: string): Pod {
  const fromSettings = { configMapKeyRef: { name: "settings", key: "color" } };
  const sources = [
    { configMap: { name: "settings", items: [{ key: "greeting", path: "greeting" }] } },
    { secret: { name: "login", items: [{ key: "user", path: "deep/user", mode: 0o400 }] } },
    { secret: { name: "absent", optional: true } },
  ];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "reader", namespace },
    spec: {
      terminationGracePeriodSeconds: 1,
      volumes: [{ name: "files", projected: { sources } }],
      containers: [
        {
          name: "main",
          image: "localhost/busybox:1",
          command: ["sh", "-c", SAYS],
          env: [
            { name: "COLOR", valueFrom: fromSettings },
            { name: "USER_NAME", valueFrom: { secretKeyRef: { name: "login", key: "user" } } },
            { name: "ABSENT", valueFrom: { secretKeyRef: { name: "absent", key: "a", optional: true } } },
          ],
          envFrom: [{ prefix: "ALL_", secretRef: { name: "login" } }],
          volumeMounts: [{ name: "files", mountPath: "/files" }],
        },
      ],
    },
  };
}

async function make({ client, namespace }: Place): Promise<void> {
  const data = { color: "blue", greeting: "hello\n" };
  const login = { user: "cm9vdA==", password: "c2VjcmV0" };
  await client.create(configMaps, { metadata: { name: "settings", namespace }, data });
  await client.create(secrets, { metadata: { name: "login", namespace }, data: login });
  await client.create(pods, reader(namespace));
}

onRealNodes((realNodes) => {
  const waiting = { timeoutMs: 60_000 };
  let plain: Place;
  let delegating: Place;
  beforeAll(async () => {
    const places = await realNodes().places({ onFinished: afterFile });
    plain = places.plain;
    delegating = places.delegating;
    await Promise.all([make(plain), make(delegating)]);
  });

  test("lets a pod read its ConfigMap and Secret as on a plain cluster, and see a change on the host", async () => {
    for (const { client, namespace } of [plain, delegating]) {
      await podThat(client, namespace, "reader", inPhase("Running"), waiting);
    }
    const there = realNodes().inMember(delegating);
    const logs = ({ cluster, namespace }: Place): Promise<string> =>
      kubectl(cluster, ["logs", "-n", namespace, "reader"]);
    const said = async (place: Place): Promise<string[]> =>
      eventually(async () => {
        const lines = (await logs(place)).split("\n");
        return lines.length > 4 && lines.slice(0, 4);
      }, waiting);
    expect(await said(there)).toEqual(["blue root secret |", "hello", "root", "400"]);
    expect(await said(plain)).toEqual(await said(there));

    const { client, namespace } = delegating;
    const body = { data: { greeting: "changed\n" } };
    await client.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body });
    await eventually(async () => (await logs(there)).includes("changed"), patient);
  });

  test("says why a pod waits whose ConfigMap comes late, and then runs it", async () => {
    const { client, namespace, cluster } = delegating;
    const [name, late] = [uniqueName("waits"), uniqueName("late")];
    const container = { name: "main", image: "localhost/busybox:1", command: ["sh", "-c", "cat /files/a"] };
    const mounted = { ...container, volumeMounts: [{ name: "files", mountPath: "/files" }] };
    const spec = {
      restartPolicy: "Never",
      volumes: [{ name: "files", configMap: { name: late } }],
      containers: [mounted],
    };
    await client.create(pods, { metadata: { name, namespace }, spec });
    const told = [
      "get",
      "events",
      "-n",
      namespace,
      `--field-selector=involvedObject.name=${name}`,
      "-o",
      "jsonpath={..message}",
    ];
    const why = `MountVolume.SetUp failed for volume "files" : configmap "${late}" not found`;
    await eventually(async () => (await kubectl(cluster, told)).includes(why), waiting);
    await client.create(configMaps, { metadata: { name: late, namespace }, data: { a: "in time" } });
    await podThat(client, namespace, name, inPhase("Succeeded"), waiting);
    const there = realNodes().inMember(delegating);
    expect(await kubectl(there.cluster, ["logs", "-n", namespace, name])).toBe("in time");
  });

  test("lets the next pod read what the last one wrote to the claim, in the claim's member", async () => {
    const { client, namespace } = delegating;
    const there = realNodes().inMember(delegating);
    const disk = uniqueName("disk");
    const name = `${namespace}-${disk}`;
    const storage = { storage: "1Mi" };
    const ofClass = { accessModes: ["ReadWriteOnce"], storageClassName: "by-hand" };
    // On the member's own disk, prepared by the test.
    const volume = {
      ...ofClass,
      capacity: storage,
      hostPath: { path: `/tmp/${name}`, type: "DirectoryOrCreate" },
      claimRef: { namespace, name: disk },
    };
    const manifest = { apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: volume };
    await kubectl(there.cluster, ["create", "-f", "-"], { input: JSON.stringify(manifest) });
    afterFile(async () => {
      await kubectl(there.cluster, ["delete", "persistentvolume", name, "--wait=false"]);
    });
    const metadata = { namespace, name: disk };
    await client.create(persistentVolumeClaims, { metadata, spec: { ...ofClass, resources: { requests: storage } } });
    const run = async (pod: string, script: string): Promise<string> => {
      const mounted = { volumeMounts: [{ name: "disk", mountPath: "/disk" }] };
      const spec = {
        restartPolicy: "Never",
        volumes: [{ name: "disk", persistentVolumeClaim: { claimName: disk } }],
        containers: [{ name: "main", image: "localhost/busybox:1", command: ["sh", "-c", script], ...mounted }],
      };
      await client.create(pods, { metadata: { name: pod, namespace }, spec });
      await podThat(client, namespace, pod, inPhase("Succeeded"), waiting);
      return await kubectl(there.cluster, ["logs", "-n", namespace, pod]);
    };
    const writes = uniqueName("writes");
    await run(writes, "echo kept >/disk/file && sync");
    await client.delete(pods, { namespace, name: writes });
    expect(await run(uniqueName("reads"), "cat /disk/file")).toBe("kept\n");
  });
});
