import type { Pod, PodSpec } from "../../../src/api/kubernetes.ts";
import { apply, endsIn, IMAGE, main, pod, runs, sandboxesGone, sh, WAITS, yaml } from "./manifests.ts";
import type { Call, Scenario } from "./scenario.ts";

/** A pod of a scenario with many. */
function named(name: string, spec: Partial<PodSpec>, labels: Readonly<Record<string, string>> = {}): Pod {
  return pod({ ...spec, metadata: { name, labels: { app: "web", ...labels } } });
}

const ENDED = { ended: "yes" };
const WORK = { volumes: [{ name: "work", emptyDir: {} }] };
const mountsWork = { volumeMounts: [{ name: "work", mountPath: "/work" }] };
const failsOnce = sh("test -e /work/second && { echo again; exit 0; }; touch /work/second; exit 42");

/** A pod for each way in which containers fail, and end, beside each other. */
const FATES: readonly Pod[] = [
  named("backs-off", { restartPolicy: "Always", ...main(sh("echo dies; exit 3")) }),
  named(
    "falls-back",
    main(sh("echo first; echo last words; exit 2"), { terminationMessagePolicy: "FallbackToLogsOnError" }),
    ENDED,
  ),
  named(
    "hook-fails",
    main(sh("sleep 600"), { lifecycle: { postStart: { exec: { command: sh("echo no; exit 1") } } } }),
    ENDED,
  ),
  named("init-backs-off", {
    restartPolicy: "OnFailure",
    initContainers: [{ name: "setup", image: IMAGE, command: sh("exit 1") }],
  }),
  named("init-fails", { initContainers: [{ name: "setup", image: IMAGE, command: sh("exit 4") }] }, ENDED),
  named("never-pulled", main(WAITS, { image: "localhost/missing:1", imagePullPolicy: "Never" })),
  named(
    "outlived",
    {
      initContainers: [
        {
          name: "sidecar",
          image: IMAGE,
          restartPolicy: "Always",
          command: sh("trap 'echo bye; exit 3' TERM; sleep 600 & wait"),
        },
      ],
      ...main(sh("sleep 1; echo done")),
    },
    ENDED,
  ),
  named("root", main(WAITS, { securityContext: { runAsNonRoot: true } })),
  named(
    "ruled",
    {
      ...WORK,
      ...main(failsOnce, {
        ...mountsWork,
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
      }),
    },
    ENDED,
  ),
  named("runs-out", main(sh("exec tail /dev/zero"), { resources: { limits: { memory: "16Mi" } } }), ENDED),
  named("serves", {
    ...main(sh("echo fine >/tmp/index.html; exec httpd -f -p 8080 -h /tmp"), {
      startupProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 60 },
      livenessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1, timeoutSeconds: 30 },
      readinessProbe: { httpGet: { path: "/no-such-page", port: 8080 }, periodSeconds: 1, timeoutSeconds: 30 },
    }),
  }),
  named("unscheduled", { nodeSelector: { disk: "none" } }),
];

const of = (statuses: string, field: string): string => `.status.${statuses}[*].${field}`;
const fates: Call = {
  kubectl: `get pods -o 'custom-columns=${[
    "NAME:.metadata.name",
    "PHASE:.status.phase",
    `INIT:${of("initContainerStatuses", "state.*.reason")}`,
    `STATE:${of("containerStatuses", "state.*.reason")}`,
    `CODE:${of("containerStatuses", "state.terminated.exitCode")}`,
    `SAYS:${of("containerStatuses", "state.*.message")}`,
    `LAST:${of("containerStatuses", "lastState.terminated.exitCode")}`,
    `READY:${of("containerStatuses", "ready")}`,
  ].join(",")}'`,
  until: new RegExp(
    [
      /backs-off +Running +<none> +CrashLoopBackOff/,
      /falls-back +Failed/,
      /hook-fails +Failed/,
      /init-backs-off +Pending +CrashLoopBackOff/,
      /init-fails +Failed/,
      /never-pulled +Pending +<none> +ErrImageNeverPull/,
      /outlived +Succeeded/,
      /root +Pending +<none> +CreateContainerConfigError/,
      /ruled +Succeeded/,
      /runs-out +Failed/,
      /serves +Running/,
    ]
      .map(({ source }) => `(?=[^]*${source})`)
      .join(""),
  ),
};

/** A container with volumes of all kinds, names and rights. */
const GIVEN = pod({
  metadata: { annotations: { note: "said" } },
  hostname: "own",
  subdomain: "sub",
  setHostnameAsFQDN: true,
  hostAliases: [{ ip: "192.0.2.7", hostnames: ["one.example", "two.example"] }],
  dnsPolicy: "None",
  dnsConfig: { nameservers: ["192.0.2.8"], searches: ["team.example"], options: [{ name: "ndots", value: "3" }] },
  shareProcessNamespace: true,
  securityContext: { supplementalGroups: [4000], fsGroup: 3000, fsGroupChangePolicy: "OnRootMismatch" },
  volumes: [
    { name: "settings", configMap: { name: "settings", items: [{ key: "colour", path: "deep/colour", mode: 0o440 }] } },
    { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    { name: "work", emptyDir: {} },
    {
      name: "all",
      projected: {
        defaultMode: 0o444,
        sources: [
          { configMap: { name: "settings", items: [{ key: "colour", path: "colour" }] } },
          { secret: { name: "key" } },
          { configMap: { name: "missing", optional: true } },
          { downwardAPI: { items: [{ path: "note", fieldRef: { fieldPath: "metadata.annotations['note']" } }] } },
          { serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 3600 } },
        ],
      },
    },
  ],
  ...main(
    sh(
      [
        "pwd; echo $SUM; echo $CPU $MEMORY $PREFIX_colour; echo $0 $@",
        "hostname; grep example /etc/hosts; cat /etc/resolv.conf; id -G",
        "cat /one /deep/deep/colour; echo; ls -lL /deep/deep | tail -1 | cut -c1-10",
        "ls /all; cat /all/colour /all/word /all/note; echo",
        "cut -d. -f2 /all/token | base64 -d 2>/dev/null | grep -o '\"aud\":[^,]*' | sort",
        "df -P /memory | tail -1 | cut -d' ' -f1; touch /no 2>&1; echo x >/given/file; ls /work; grep Cap /proc/self/status",
        "cat /proc/1/comm",
      ].join("\n"),
    ),
    {
      args: ["argument-0", "and-1"],
      workingDir: "/tmp",
      env: [
        { name: "BASE", value: "base" },
        { name: "SUM", value: "$(BASE)-$(MISSING)-$$(BASE)" },
        { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "CPU", valueFrom: { resourceFieldRef: { resource: "requests.cpu", divisor: "1m" } } },
        { name: "MEMORY", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } } },
      ],
      envFrom: [{ prefix: "PREFIX_", configMapRef: { name: "settings" } }],
      resources: { requests: { cpu: "10m" }, limits: { memory: "32Mi" } },
      securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] } },
      volumeMounts: [
        { name: "settings", mountPath: "/deep" },
        { name: "settings", mountPath: "/one", subPath: "deep/colour" },
        { name: "memory", mountPath: "/memory" },
        { name: "work", mountPath: "/work" },
        { name: "work", mountPath: "/given", subPathExpr: "of-$(POD)" },
        { name: "all", mountPath: "/all" },
      ],
    },
  ),
});

const amounts = (cpu: string, memory: string): object => ({ requests: { cpu, memory }, limits: { cpu, memory } });
/** Prints the kernel's limits of the container, for both versions of cgroups. */
const limits: Call = {
  kubectl: `exec web -- sh -c 'cd /sys/fs/cgroup; cat cpu.max cpu/cpu.cfs_quota_us memory.max memory/memory.limit_in_bytes 2>/dev/null; cat /about/cpu'`,
};
const resize = (resources: object): Call => ({
  kubectl: `patch pod web --subresource=resize -p '${JSON.stringify({ spec: { containers: [{ name: "main", resources }] } })}'`,
});
const resized: Call = {
  kubectl:
    "get pod web -o 'jsonpath={.status.containerStatuses[0].resources} {.status.containerStatuses[0].allocatedResources} {.status.containerStatuses[0].restartCount} {.status.conditions[?(@.type==\"PodResizePending\")].reason}'",
};

/** Scenarios of containers: their inputs, their ends, and changes while they run. */
export const CONTAINER_SCENARIOS: readonly Scenario[] = [
  {
    name: "every way in which containers fail and end",
    calls: [
      apply(...FATES),
      fates,
      sandboxesGone("ended=yes"),
      { kubectl: "get pods -l ended=yes --sort-by=.metadata.name -o yaml", unordered: true },
      { kubectl: "logs -l ended=yes --all-containers --prefix --tail=5 --ignore-errors", unordered: true },
      { kubectl: "logs -l app=web --since=1h --timestamps --max-log-requests=20 --ignore-errors", unordered: true },
      { kubectl: "logs backs-off --previous", until: /dies/ },
      {
        kubectl:
          "get events --field-selector=reason=FailedPostStartHook --no-headers -o 'custom-columns=SAYS:.message'",
      },
      { kubectl: "wait pod -l ended=yes --for=jsonpath={.status.phase}=Failed --timeout=5s", unordered: true },
      { kubectl: "delete pods --all --grace-period=1", unordered: true },
    ],
  },
  {
    name: "everything that a container is given",
    calls: [
      apply(
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { colour: "blue" } },
        { apiVersion: "v1", kind: "Secret", metadata: { name: "key" }, stringData: { word: "sesame" } },
        GIVEN,
      ),
      { kubectl: "wait pod/web --for=jsonpath={.status.phase}=Succeeded --timeout=150s" },
      { kubectl: "logs web" },
      endsIn("Succeeded"),
      yaml,
    ],
  },
  {
    name: "resources that are changed while the container runs",
    calls: [
      apply(
        pod({
          volumes: [
            {
              name: "about",
              downwardAPI: {
                items: [
                  { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu", divisor: "1m" } },
                ],
              },
            },
          ],
          ...main(WAITS, {
            resources: amounts("100m", "32Mi"),
            volumeMounts: [{ name: "about", mountPath: "/about" }],
          }),
        }),
      ),
      runs,
      limits,
      resize(amounts("200m", "48Mi")),
      { ...resized, until: /"cpu":"200m".*"200m"/ },
      { ...limits, until: /^20000\b[\s\S]*^50331648$[\s\S]*^200$/m },
      yaml,
      // More than any node has.
      resize(amounts("5000", "48Mi")),
      { ...resized },
      yaml,
      limits,
      resize(amounts("150m", "40Mi")),
      { ...resized, until: /"cpu":"150m".*"150m"/ },
      { ...limits, until: /^15000\b[\s\S]*^41943040$[\s\S]*^150$/m },
      resize({ requests: { cpu: "50m" } }),
      { kubectl: `patch pod web -p '{"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"1"}}}]}}'` },
      { kubectl: "delete pod web --now" },
    ],
  },
  {
    name: "a pod that takes its time to end",
    calls: [
      apply(
        pod({
          terminationGracePeriodSeconds: 120,
          ...main(sh("trap 'echo told to end; exit 0' TERM; sleep 600 & wait"), {
            lifecycle: { preStop: { exec: { command: sh("until test -e /tmp/go; do sleep 0.1; done") } } },
          }),
        }),
      ),
      runs,
      { kubectl: "delete pod web --wait=false" },
      { kubectl: "get pods", until: /Terminating/ },
      { kubectl: "get pod web -o 'jsonpath={.metadata.deletionGracePeriodSeconds} {.status.phase}'" },
      { kubectl: "exec web -- echo still here" },
      { kubectl: "label pod web late=yes" },
      { kubectl: "delete pod web --wait=false --grace-period=60" },
      { kubectl: "get pod web -o 'jsonpath={.metadata.deletionGracePeriodSeconds}'" },
      { kubectl: "exec web -- touch /tmp/go" },
      { kubectl: "get pods", until: /No resources found/ },
      { kubectl: "logs web" },
    ],
  },
  {
    name: "a pod that fits on no node",
    calls: [
      apply(pod(main(WAITS, { resources: { requests: { cpu: "5000" } } }))),
      { kubectl: "wait pod/web --for=condition=PodScheduled=False --timeout=150s" },
      {
        kubectl:
          "get pod web -o 'jsonpath={range .status.conditions[*]}{.type} {.status} {.reason} {.observedGeneration};{end}'",
      },
      { kubectl: "get pods" },
      { kubectl: "delete pod web" },
    ],
  },
  {
    name: "a pod that is deleted by force, and that a finalizer holds",
    calls: [
      apply(
        pod({
          metadata: { finalizers: ["example.com/held"] },
          terminationGracePeriodSeconds: 120,
          ...main(sh("trap 'exit 7' TERM; sleep 600 & wait")),
        }),
      ),
      runs,
      { kubectl: "delete pod web --force --grace-period=0 --wait=false" },
      {
        kubectl: "get pod web -o 'jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}'",
        until: /^Failed \d/,
      },
      { kubectl: "get pod web -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason}'" },
      { kubectl: `patch pod web --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'` },
      { kubectl: "get pods", until: /No resources found/ },
    ],
  },
  {
    name: "a copy for debugging, a folder that is copied in, and commands that are killed",
    calls: [
      apply(pod({})),
      runs,
      {
        kubectl: "debug web --copy-to=copy --container=main -- sh -c 'echo copied; exit 6'",
      },
      {
        kubectl: "get pod copy -o 'jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}'",
        until: /^Failed 6/,
      },
      { kubectl: "logs copy" },
      {
        kubectl:
          "get pod copy -o 'jsonpath={.spec.containers[0].command} {.spec.shareProcessNamespace} {.status.qosClass}'",
      },
      { kubectl: "cp test/support/conformance web:/tmp/folder" },
      { kubectl: "exec web -- sh -c 'cd /tmp/folder; find . -type f | sort | xargs md5sum'" },
      { kubectl: "exec web -- sh -c 'kill -9 $$'" },
      { kubectl: "exec web -- sh -c 'kill -TERM $$'" },
      { kubectl: "exec web -- sh -c 'exit 255'" },
      { kubectl: "delete pods --all --now", unordered: true },
    ],
  },
];
