import { CONTAINER_SCENARIOS } from "./container-scenarios.ts";
import { apply, endsIn, events, IMAGE, inPhase, main, pod, runs, sh, WAITS, yaml } from "./manifests.ts";
import type { Call, Scenario } from "./scenario.ts";

// Events come a moment after the status, those of the scheduler and of the kubelet apart.
const described: Call = {
  kubectl: "describe pod web",
  until: /(?=[\s\S]* Scheduled )(?=[\s\S]* Started )/,
  unordered: true,
};

/** A probe whose first failure counts; one that takes long to say so is no other failure. */
function failsAtOnce(command: readonly string[]): object {
  return { exec: { command }, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 1 };
}

/** Manifests and calls that people and engines make, on a node of their own cluster and on Legation's. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "a pod that succeeds",
    calls: [
      apply(pod(main(sh("echo to stdout; sleep 0.2; echo to stderr >&2; echo result > /dev/termination-log")))),
      endsIn("Succeeded"),
      yaml,
      events("Started"),
      described,
      { kubectl: "get pods" },
      { kubectl: "logs web" },
      { kubectl: "logs web --tail=1" },
      { kubectl: "logs web --limit-bytes=4" },
      { kubectl: "logs web -c other" },
      { kubectl: "logs web --previous" },
      { kubectl: "exec web -- true" },
      { kubectl: "delete pod web" },
      { kubectl: "get pods" },
    ],
  },
  {
    name: "a pod that fails",
    calls: [
      apply(pod(main(sh("echo about to fail; echo why > /dev/termination-log; exit 3")))),
      endsIn("Failed"),
      yaml,
      events("Started"),
      { kubectl: "logs web" },
      { kubectl: "wait pod/web --for=condition=Ready --timeout=1s" },
      { kubectl: "get pods" },
    ],
  },
  {
    name: "a running pod and what is done to it",
    calls: [
      apply(pod({})),
      runs,
      yaml,
      described,
      { kubectl: "exec web -- sh -c 'echo out; echo err >&2; exit 7'" },
      { kubectl: "exec -i web -- cat", input: "typed\n" },
      { kubectl: "exec web -- no-such-program" },
      { kubectl: "exec web -c other -- true" },
      { kubectl: "exec other -- true" },
      { kubectl: "exec web -- hostname" },
      { kubectl: "logs other" },
      { kubectl: "attach web -c other" },
      { kubectl: "label pod web tier=gold" },
      { kubectl: "label pod web tier=silver" },
      { kubectl: "annotate pod web note=text" },
      { kubectl: "get pods -l tier=gold -o name" },
      { kubectl: `patch pod web -p '{"spec":{"hostname":"other"}}'` },
      { kubectl: `patch pod web -p '{"spec":{"restartPolicy":"Always"}}'` },
      { kubectl: "set image pod/web main=localhost/busybox:1" },
      { kubectl: "top pod web" },
      { kubectl: "delete pod web --grace-period=1" },
      { kubectl: "exec web -- true" },
    ],
  },
  {
    name: "init containers, a sidecar and two containers",
    calls: [
      apply(
        pod({
          volumes: [{ name: "work", emptyDir: {} }],
          initContainers: [
            {
              name: "setup",
              image: IMAGE,
              command: sh("echo made by setup > /work/file; echo done > /dev/termination-log"),
              volumeMounts: [{ name: "work", mountPath: "/work" }],
            },
            { name: "sidecar", image: IMAGE, restartPolicy: "Always", command: [...WAITS] },
          ],
          containers: [
            {
              name: "main",
              image: IMAGE,
              command: sh("cat /work/file"),
              volumeMounts: [{ name: "work", mountPath: "/work" }],
            },
            { name: "second", image: IMAGE, command: sh("sleep 1; exit 5") },
          ],
        }),
      ),
      endsIn("Failed"),
      yaml,
      events("Killing"),
      { kubectl: "logs web" },
      { kubectl: "logs web --all-containers --prefix", unordered: true },
      { kubectl: "logs web -c setup" },
      { kubectl: "get pods" },
    ],
  },
  {
    name: "a container that is started again",
    calls: [
      apply(
        pod({
          restartPolicy: "Always",
          volumes: [{ name: "work", emptyDir: {} }],
          ...main(
            sh("test -e /work/second && { echo second; exec sleep 600; }; touch /work/second; echo first; exit 4"),
            {
              volumeMounts: [{ name: "work", mountPath: "/work" }],
            },
          ),
        }),
      ),
      { kubectl: "get pod web -o 'jsonpath={.status.containerStatuses[0].restartCount}'", until: /^1/ },
      runs,
      yaml,
      { kubectl: "logs web", until: /second/ },
      { kubectl: "logs web --previous" },
      { kubectl: "delete pod web --now" },
    ],
  },
  {
    name: "an image that is not there",
    calls: [
      apply(pod({ containers: [{ name: "main", image: "localhost/missing:1" }] })),
      {
        kubectl: "get pod web -o 'jsonpath={.status.containerStatuses[0].state.waiting.reason}'",
        until: /ImagePullBackOff/,
      },
      // Between two tries it waits, and each try fails anew.
      { ...yaml, until: /reason: ImagePullBackOff/ },
      events("BackOff"),
      { kubectl: "logs web", until: /trying and failing/ },
      { kubectl: "exec web -- true" },
      { kubectl: "get pods", until: /ImagePullBackOff/ },
      { kubectl: "delete pod web" },
    ],
  },
  {
    name: "an invalid image name",
    calls: [
      apply(pod({ containers: [{ name: "main", image: "No Such Image!" }] })),
      {
        kubectl: "get pod web -o 'jsonpath={.status.containerStatuses[0].state.waiting.reason}'",
        until: /InvalidImageName/,
      },
      yaml,
    ],
  },
  {
    name: "a program that is not in the image",
    calls: [apply(pod(main(["/no/such/program"]))), endsIn("Failed"), yaml, { kubectl: "logs web" }],
  },
  {
    name: "a readiness probe that fails until it is told otherwise",
    calls: [
      apply(
        pod(
          main(WAITS, {
            readinessProbe: failsAtOnce(["test", "-e", "/tmp/ready"]),
          }),
        ),
      ),
      inPhase("Running"),
      events("Unhealthy"),
      yaml,
      { kubectl: "exec web -- touch /tmp/ready" },
      runs,
      yaml,
    ],
  },
  {
    name: "a liveness probe that fails",
    calls: [
      apply(
        pod({
          restartPolicy: "Always",
          ...main(WAITS, {
            livenessProbe: failsAtOnce(["test", "-e", "/tmp/alive"]),
          }),
          terminationGracePeriodSeconds: 1,
        }),
      ),
      // The last that is new, after the container's second end.
      events("BackOff"),
      {
        kubectl: "get pod web -o 'jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}'",
        until: /^0/,
      },
      { kubectl: "delete pod web --now" },
    ],
  },
  {
    name: "a pod that may run for ten minutes, and then only for a second",
    calls: [
      apply(pod({ activeDeadlineSeconds: 600, terminationGracePeriodSeconds: 1 })),
      // A deadline that is near from the start may come before its container.
      runs,
      { kubectl: `patch pod web -p '{"spec":{"activeDeadlineSeconds":1}}'` },
      inPhase("Failed"),
      events("DeadlineExceeded", "Killing"),
      { kubectl: "get pod web -o 'jsonpath={.status.reason}: {.status.message}'" },
      { kubectl: "get pods" },
    ],
  },
  {
    name: "hooks",
    calls: [
      apply(
        pod({
          ...main(WAITS, {
            lifecycle: {
              postStart: { exec: { command: sh("echo post > /tmp/hook") } },
              preStop: { exec: { command: sh("exit 9") } },
            },
          }),
        }),
      ),
      runs,
      { kubectl: "exec web -- cat /tmp/hook" },
      { kubectl: "delete pod web" },
      events("FailedPreStopHook"),
    ],
  },
  {
    name: "what a pod can know of itself",
    calls: [
      apply(
        pod({
          metadata: { annotations: { note: "said" } },
          hostname: "own",
          subdomain: "sub",
          securityContext: { runAsUser: 1000, runAsGroup: 2000, fsGroup: 3000 },
          volumes: [
            {
              name: "about",
              downwardAPI: {
                items: [
                  { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
                  { path: "annotations", fieldRef: { fieldPath: "metadata.annotations" } },
                ],
              },
            },
          ],
          ...main(
            sh(
              "echo $NAME $NAMESPACE $ACCOUNT $LIMIT; hostname; hostname -f; id; cat /about/labels; echo; cat /about/annotations",
            ),
            {
              env: [
                { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
                { name: "NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
                { name: "ACCOUNT", valueFrom: { fieldRef: { fieldPath: "spec.serviceAccountName" } } },
                { name: "LIMIT", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } },
              ],
              resources: { limits: { cpu: "100m", memory: "32Mi" } },
              volumeMounts: [{ name: "about", mountPath: "/about" }],
            },
          ),
        }),
      ),
      inPhase("Succeeded"),
      { kubectl: "logs web" },
      { kubectl: "get pod web -o 'jsonpath={.status.qosClass}'" },
    ],
  },
  {
    name: "files of its namespace",
    calls: [
      apply(
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { colour: "blue" } },
        { apiVersion: "v1", kind: "Secret", metadata: { name: "key" }, stringData: { word: "sesame" } },
        pod({
          volumes: [
            { name: "settings", configMap: { name: "settings" } },
            { name: "key", secret: { secretName: "key", defaultMode: 0o400 } },
          ],
          ...main(sh("cat /settings/colour; echo; ls -lL /key | tail -1 | cut -c1-10; echo $WORD"), {
            env: [{ name: "WORD", valueFrom: { secretKeyRef: { name: "key", key: "word" } } }],
            volumeMounts: [
              { name: "settings", mountPath: "/settings" },
              { name: "key", mountPath: "/key" },
            ],
          }),
        }),
      ),
      endsIn("Succeeded"),
      yaml,
      { kubectl: "logs web" },
      { kubectl: "get configmaps,secrets" },
    ],
  },
  {
    name: "a ConfigMap that comes late",
    calls: [
      apply(pod(main(sh("echo $COLOUR"), { envFrom: [{ configMapRef: { name: "settings" } }] }))),
      { kubectl: "get pods", until: { plain: /CreateContainerConfigError/, legation: /Pending/ } },
      { kubectl: "create configmap settings --from-literal=COLOUR=blue" },
      { ...inPhase("Succeeded") },
      { kubectl: "logs web" },
    ],
  },
  {
    name: "a debug container",
    calls: [
      apply(pod({})),
      runs,
      { kubectl: `debug web --image=${IMAGE} -c peek --attach=false -- sh -c 'echo seen; exit 6'` },
      {
        kubectl: "get pod web -o 'jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}'",
        until: /^6/,
      },
      { kubectl: "logs web -c peek" },
      yaml,
    ],
  },
  {
    name: "kubectl run and its exit code",
    calls: [
      {
        kubectl: `run web --image=${IMAGE} --restart=Never --rm -i --quiet --pod-running-timeout=150s -- sh -c 'read line; echo got $line; exit 4'`,
        input: "a line\n",
      },
      // kubectl does not wait for the deletion that it has asked for.
      { kubectl: "get pods", until: /No resources found/ },
    ],
  },
  {
    name: "files that are copied in and out",
    calls: [
      apply(pod({})),
      runs,
      { kubectl: "exec -i web -- tar xf - -C /no/such/folder", input: "not an archive" },
      { kubectl: "exec web -- tar cf - /etc/no-such-file" },
      { kubectl: "cp /no/such/local/file web:/tmp" },
      { kubectl: "cp /etc/services web:/tmp/copied" },
      { kubectl: "exec web -- md5sum /tmp/copied" },
    ],
  },
  {
    name: "an eviction",
    calls: [
      apply(pod({}), {
        apiVersion: "policy/v1",
        kind: "PodDisruptionBudget",
        metadata: { name: "web" },
        spec: { maxUnavailable: 0, selector: { matchLabels: { app: "web" } } },
      }),
      runs,
      { kubectl: "get pdb web -o 'jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}'", until: /^1 0/ },
      {
        kubectl: "create --raw /api/v1/namespaces/<namespace>/pods/web/eviction -f -",
        input: JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "web" } }),
      },
      { kubectl: "delete pdb web" },
      {
        kubectl: "create --raw /api/v1/namespaces/<namespace>/pods/web/eviction -f -",
        input: JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "web" } }),
      },
      { kubectl: "get pods", until: /No resources/ },
    ],
  },
  {
    name: "a Job that succeeds",
    calls: [
      apply({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "web" },
        spec: {
          completions: 2,
          parallelism: 2,
          completionMode: "Indexed",
          template: {
            spec: {
              restartPolicy: "Never",
              dnsPolicy: "Default",
              ...main(sh("echo index $JOB_COMPLETION_INDEX on $(hostname)")),
            },
          },
        },
      }),
      { kubectl: "wait job/web --for=condition=Complete --timeout=150s" },
      { kubectl: "logs job/web --all-pods --prefix", unordered: true },
      { kubectl: "get job web -o 'jsonpath={.status.succeeded} {.status.completedIndexes}'" },
      { kubectl: "get pods --no-headers", unordered: true },
    ],
  },
  {
    name: "a Job that fails",
    calls: [
      apply({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "web" },
        spec: {
          backoffLimit: 0,
          template: { spec: { restartPolicy: "Never", dnsPolicy: "Default", ...main(sh("exit 1")) } },
        },
      }),
      { kubectl: "wait job/web --for=condition=Failed --timeout=150s" },
      { kubectl: "get job web -o 'jsonpath={.status.failed} {.status.conditions[*].reason}'" },
      { kubectl: "logs job/web" },
    ],
  },
  {
    name: "a Deployment that is rolled out, updated and scaled",
    calls: [
      apply({
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "web" },
        spec: {
          replicas: 2,
          selector: { matchLabels: { app: "web" } },
          template: {
            metadata: { labels: { app: "web" } },
            spec: { terminationGracePeriodSeconds: 1, dnsPolicy: "Default", ...main(WAITS) },
          },
        },
      }),
      { kubectl: "wait deployment/web --for=condition=Available --timeout=150s" },
      { kubectl: "rollout status deployment/web --timeout=150s" },
      { kubectl: "get deployment web --no-headers" },
      { kubectl: "logs deployment/web", until: /started/ },
      { kubectl: "exec deployment/web -- echo in one of them" },
      { kubectl: "scale deployment/web --replicas=1" },
      { kubectl: "get pods --no-headers -o name", until: /^pod.*\n= 0$/ },
      { kubectl: "delete deployment web" },
      { kubectl: "get pods", until: /No resources/ },
    ],
  },
  ...CONTAINER_SCENARIOS,
];
