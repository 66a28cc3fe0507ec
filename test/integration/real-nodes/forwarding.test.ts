import { expect, test } from "vitest";
import type { Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { pods } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { comparable } from "../../support/harness/final-state.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podsOf, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventuallyPasses } from "../../support/harness/wait.ts";

// Real kubelets and containers: each action runs twice, on a plain cluster and on a host whose member runs
// the pod. Both must look the same.

const IMAGE = "localhost/busybox:1";
const SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"];

function script(text: string): string[] {
  return ["sh", "-c", text];
}

function podWith(spec: Partial<PodSpec>, annotations: Record<string, string> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", labels: { app: "web" }, annotations },
    spec: {
      containers: [{ name: "main", image: IMAGE, command: SLEEP }],
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      ...spec,
    },
  };
}

type Holds = (pod: Stored<Pod>) => boolean;

interface Step {
  readonly act?: (place: Place) => Promise<unknown>;
  readonly until: Holds;
}

interface Row {
  readonly name: string;
  readonly pod: Pod;
  readonly steps: readonly Step[];
}

const isReady: Holds = (pod) => conditionOf(pod, "Ready")?.status === "True";

function patched(body: object, subresource?: string): (place: Place) => Promise<unknown> {
  return ({ client, namespace }) =>
    client.patch(
      pods,
      { namespace, name: "web" },
      { type: "strategic", body },
      subresource === undefined ? {} : { subresource },
    );
}

const rows: readonly Row[] = [
  {
    name: "a termination message of any bytes",
    pod: podWith({
      restartPolicy: "Never",
      containers: [
        {
          name: "main",
          image: IMAGE,
          command: script(
            `printf '[{"key":"d\\303\\251j\\303\\240","value":"\\\\u0000 \\001\\t\\\\n\\342\\200\\250 \\360\\237\\230\\200"}]\\n\\377\\376' >/dev/termination-log; exit 3`,
          ),
        },
      ],
    }),
    steps: [{ until: inPhase("Failed") }],
  },
  {
    name: "a container that failed once, and runs",
    pod: podWith({
      volumes: [{ name: "work", emptyDir: {} }],
      containers: [
        {
          name: "main",
          image: IMAGE,
          volumeMounts: [{ name: "work", mountPath: "/work" }],
          command: script(
            "test -e /work/second && exec sleep 600; touch /work/second; echo first >/dev/termination-log; exit 4",
          ),
        },
      ],
    }),
    steps: [{ until: (pod) => isReady(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1 }],
  },
  {
    name: "volumes and a token of its service account",
    pod: podWith({
      automountServiceAccountToken: true,
      volumes: [{ name: "work", emptyDir: {} }],
      containers: [
        { name: "main", image: IMAGE, command: SLEEP, volumeMounts: [{ name: "work", mountPath: "/work" }] },
      ],
    }),
    steps: [{ until: isReady }],
  },
  {
    name: "init containers, a sidecar with probes, and two containers that end differently",
    pod: podWith({
      restartPolicy: "Never",
      initContainers: [
        { name: "setup", image: IMAGE, command: script("echo set up >/dev/termination-log") },
        {
          name: "sidecar",
          image: IMAGE,
          restartPolicy: "Always",
          command: SLEEP,
          startupProbe: { exec: { command: ["true"] }, timeoutSeconds: 30 },
        },
      ],
      containers: [
        { name: "z-main", image: IMAGE, command: script("sleep 2") },
        { name: "a-other", image: IMAGE, command: script("sleep 1; exit 7") },
      ],
    }),
    steps: [{ until: inPhase("Failed") }],
  },
  {
    name: "an image that does not exist",
    pod: podWith({ containers: [{ name: "main", image: "localhost/missing:1" }] }),
    steps: [
      {
        until: ({ status }) =>
          /^(ErrImagePull|ImagePullBackOff)$/.test(status?.containerStatuses?.[0]?.state?.waiting?.reason ?? ""),
      },
    ],
  },
  {
    name: "readiness gates that are opened and closed",
    pod: podWith({ readinessGates: [{ conditionType: "example.com/registered" }] }),
    steps: [
      { until: (pod) => conditionOf(pod, "ContainersReady")?.status === "True" && !isReady(pod) },
      {
        act: patched({ status: { conditions: [{ type: "example.com/registered", status: "True" }] } }, "status"),
        until: isReady,
      },
      {
        act: patched(
          { status: { conditions: [{ type: "example.com/registered", status: "False", reason: "Drained" }] } },
          "status",
        ),
        until: (pod) => conditionOf(pod, "Ready")?.status === "False",
      },
    ],
  },
  {
    name: "a debug container",
    pod: podWith({}),
    steps: [
      { until: isReady },
      {
        act: ({ cluster, namespace }) =>
          kubectl(cluster, [
            "debug",
            "-n",
            namespace,
            "web",
            `--image=${IMAGE}`,
            "--container=debugger",
            "--target=main",
            "--",
            ...script("test -d /proc/1 && exit 7"),
          ]),
        until: ({ status }) => status?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode === 7,
      },
    ],
  },
  {
    name: "a deadline that is set later",
    pod: podWith({ restartPolicy: "Never" }),
    steps: [{ until: isReady }, { act: patched({ spec: { activeDeadlineSeconds: 1 } }), until: inPhase("Failed") }],
  },
  {
    name: "a toleration that is added later, and a label",
    pod: podWith({}),
    steps: [
      { until: isReady },
      {
        act: async (place) => {
          const { spec } = await podThat(place.client, place.namespace, "web", isReady);
          const tolerations = [...(spec?.tolerations ?? []), { key: "example.com/maintenance", operator: "Exists" }];
          await patched({ metadata: { labels: { changed: "yes" } }, spec: { tolerations } })(place);
        },
        until: isReady,
      },
    ],
  },
  {
    // Tekton's first step waits for a file that shows an annotation, and its sidecars end when their image is replaced.
    name: "a Tekton-like pod whose controller starts its step and stops its sidecar",
    pod: podWith({
      restartPolicy: "Never",
      volumes: [
        {
          name: "downward",
          downwardAPI: {
            items: [{ path: "ready", fieldRef: { fieldPath: "metadata.annotations['tekton.dev/ready']" } }],
          },
        },
      ],
      containers: [
        {
          name: "step",
          image: IMAGE,
          volumeMounts: [{ name: "downward", mountPath: "/tekton/downward" }],
          command: script(
            'until test -s /tekton/downward/ready; do sleep 0.2; done; printf \'[{"key":"done"}]\' >/dev/termination-log',
          ),
        },
        { name: "sidecar", image: IMAGE, command: SLEEP },
      ],
    }),
    steps: [
      { until: ({ status }) => status?.phase === "Running" && (status.containerStatuses?.length ?? 0) === 2 },
      {
        act: patched({ metadata: { annotations: { "tekton.dev/ready": "READY" } } }),
        until: ({ status }) => status?.containerStatuses?.[1]?.state?.terminated?.exitCode === 0,
      },
      {
        act: patched({ spec: { containers: [{ name: "sidecar", image: "localhost/nop:1" }] } }),
        until: inPhase("Succeeded"),
      },
    ],
  },
];

async function play({ pod, steps }: Row, place: Place): Promise<Stored<Pod>> {
  const { client, namespace } = place;
  let last = await client.create(pods, { ...pod, metadata: { ...pod.metadata, namespace } });
  for (const [index, { act, until }] of steps.entries()) {
    await act?.(place);
    const what = `step ${index + 1} on ${place.cluster.name}`;
    last = await podThat(client, namespace, "web", until, { what, timeoutMs: 120_000, intervalMs: 200 });
  }
  return last;
}

onRealNodes((realNodes) => {
  test.each(rows)("shows the same on the host as on a plain cluster: $name", async (row) => {
    const { plain, delegating } = await realNodes().places();
    await Promise.all([play(row, plain), play(row, delegating)]);
    await eventuallyPasses(async () => {
      const shown = async ({ client, namespace }: Place): Promise<object> =>
        comparable({ namespace, workloads: [], pods: await podsOf(client, namespace) });
      expect(await shown(delegating)).toEqual(await shown(plain));
    });
  });
});
