/** Files and processes of the pod that streams go to. */
const MAIN = [
  "mkdir -p /www && echo hello from the pod > /www/index.html && httpd -p 8080 -h /www",
  'trap "exit 0" TERM; sleep 3600 & wait',
].join("; ");

interface Container {
  readonly name: string;
  readonly script: string;
  readonly options?: object;
}

/** A pod of busybox, as `kubectl apply` takes it. */
export function podManifest(name: string, containers: readonly Container[], spec: object = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      containers: containers.map(({ name: container, script, options }) => ({
        name: container,
        image: "localhost/busybox:1",
        command: ["sh", "-c", script],
        ...options,
      })),
      ...spec,
    },
  });
}

/** A pod with a web server on port 8080, a container that echoes each line, and a terminated one. */
export function servingPod(name: string): string {
  return podManifest(name, [
    { name: "main", script: MAIN },
    {
      name: "parrot",
      script: "while true; do while read line; do echo polly: $line; done; sleep 0.1; done",
      options: { stdin: true },
    },
    { name: "ended", script: "exit 0" },
  ]);
}
