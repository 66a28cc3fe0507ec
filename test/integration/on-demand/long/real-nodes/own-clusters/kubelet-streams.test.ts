import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { issueAuthority } from "../../../../../../src/certificates/issue.ts";
import { freePort } from "../../../../../support/clusters/ports.ts";
import { startClusters } from "../../../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../../../support/clusters/types.ts";
import { uniqueName } from "../../../../../support/delegated/unique-name.ts";
import { cleanUpFile } from "../../../../../support/harness/after-file.ts";
import { kubectl } from "../../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../../support/harness/namespace.ts";
import { whereRealNodesRun } from "../../../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../../../support/harness/wait.ts";
import { bindClusterRole, createUser, type HostUser, openMember } from "../../../../../support/legation/access.ts";
import { joinBehindAgent, type RunningAgent } from "../../../../../support/legation/agent.ts";
import { type Legation, type LegationProcess, startLegation } from "../../../../../support/legation/start.ts";
import { testCarriedStreams } from "../../../../../support/streams/carried.ts";
import { Channels } from "../../../../../support/streams/channels.ts";
import { type Ran, runStreaming, StreamingKubectl, type Transport } from "../../../../../support/streams/kubectl.ts";
import { podManifest, servingPod } from "../../../../../support/streams/pods.ts";

const TRANSPORTS: readonly Transport[] = ["SPDY", "WebSocket"];
const LARGE = 20 * 2 ** 20;
const EXEC = ["exec", "web", "-c", "main", "--", "true"];
const APPROVAL = fileURLToPath(
  new URL("../../../../../../examples/kubelet-certificate/approval.yaml", import.meta.url),
);
const patient = { timeoutMs: 90_000 };
// Shorter than the time left until an agent connects to the next leader.
const PUBLISHED = { timeoutMs: 10_000 };
// An agent takes a frozen leader for gone after 30 s, and streams are open meanwhile.
const LONG_MS = 180_000;
const FLAGS = ["--node-address=127.0.0.1", "--kubelet-certificate-signer=kubernetes.io/kubelet-serving"];

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function streams(): void {
  let clusters: Clusters;
  let home: Cluster;
  let away: Cluster;
  let legation: Legation;
  /** The namespace whose pod is delegated from the host; the plain one runs the same pod without Legation. */
  let delegated: string;
  let plain: string;
  /** The host's error from the virtual node before its certificate is approved. */
  let unapproved: string;
  const folder = mkdtempSync(join(tmpdir(), "legation-signer-"));

  beforeAll(async () => {
    // The API server trusts only kubelets with a certificate of the cluster's signer.
    const [cert, key] = [join(folder, "ca.crt"), join(folder, "ca.key")];
    const authority = await issueAuthority("kubelet-serving", { now: Date.now(), lifetimeMs: 86_400_000 });
    writeFileSync(cert, authority.cert);
    writeFileSync(key, authority.key);
    const signing = "--cluster-signing-kubelet-serving";
    const signer = {
      apiServerFlags: [`--kubelet-certificate-authority=${cert}`],
      controllerManagerFlags: [`${signing}-cert-file=${cert}`, `${signing}-key-file=${key}`],
    };
    clusters = await startClusters({
      names: ["home", "away"],
      clusters: { home: { nodes: [], ...signer }, away: { realNode: true } },
      onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
    });
    [home, away] = [clusters.get("home"), clusters.get("away")];
    legation = await startLegation({
      host: home,
      members: { away },
      takesAgents: true,
      // This controller takes over from those that the tests kill.
      controllerFlags: [`--kubelet-listen=127.0.0.1:${await freePort()}`, "--lease-duration=15s", ...FLAGS],
      restart: true,
    });
    const labels = { "legation.dev/delegation": "all" };
    delegated = await freshNamespace(home, { prefix: "delegated", labels, onFinished: () => {} });
    plain = await freshNamespace(away, { prefix: "plain", onFinished: () => {} });
    const reader = ["create", "rolebinding", "reader", "--clusterrole=view", `--serviceaccount=${delegated}:default`];
    await kubectl(home, ["-n", delegated, ...reader]);
    await apply(servingPod("web"));
    unapproved = await eventually(async () => {
      const { stderr } = await run("SPDY", EXEC);
      // The node's addresses come with its first status, which may be after its first pod on a busy machine.
      return !stderr.includes("known addresses: []") && stderr;
    }, patient);
    const asked = await eventually(async () => {
      const names = await kubectl(home, ["get", "csr", "-o", "name"]);
      return names !== "" && names.trim().split("\n");
    }, patient);
    await kubectl(home, ["certificate", "approve", ...asked]);
    await expectServed();
    // Approves the certificates from now on.
    await kubectl(home, ["apply", "-f", APPROVAL]);
  });
  afterAll(async () => {
    await legation?.stop();
    await clusters?.stop();
    rmSync(folder, { recursive: true });
  });

  /** Creates a pod on both sides and waits until its container `main` runs; statuses are sorted by name. */
  async function apply(manifest: string): Promise<void> {
    const { metadata } = JSON.parse(manifest) as { metadata: { name: string } };
    await Promise.all(
      [[home, delegated] as const, [away, plain] as const].map(async ([cluster, namespace]) => {
        await kubectl(cluster, ["-n", namespace, "apply", "-f", "-"], { input: manifest });
        const started = '--for=jsonpath={.status.containerStatuses[?(@.name=="main")].started}=true';
        const wait = ["-n", namespace, "wait", `pod/${metadata.name}`, started, "--timeout=100s"];
        await kubectl(cluster, wait, { timeoutMs: 110_000 });
      }),
    ).catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${await whatIsThere()}`);
    });
  }

  /** Returns the state of both clusters and the controller's last log lines, for the error of a pod that does not start. */
  async function whatIsThere(): Promise<string> {
    const shown = [home, away].map((cluster) => kubectl(cluster, ["get", "nodes,pods,events", "-A", "-o", "wide"]));
    return [...(await Promise.all(shown)), legation.controller.log().split("\n").slice(-20).join("\n")].join("\n");
  }

  const at = (namespace: string, args: readonly string[]): string[] => ["-n", namespace, ...args];
  const open = (transport: Transport, ...args: string[]): StreamingKubectl => {
    const running = new StreamingKubectl(at(delegated, args), {
      kubeconfig: home.kubeconfig,
      transport,
      timeoutMs: LONG_MS,
    });
    onTestFinished(() => running[Symbol.dispose]());
    return running;
  };
  const run = (transport: Transport, args: readonly string[], input?: Buffer | string): Promise<Ran> =>
    runStreaming(at(delegated, args), {
      kubeconfig: home.kubeconfig,
      transport,
      ...(input === undefined ? {} : { input }),
    });
  /** Returns the result of a command through Legation and on the plain cluster. */
  const both = (transport: Transport, args: readonly string[], input = ""): Promise<[unknown, unknown]> =>
    compared(run, transport, args, input);
  const compared = async (
    here: typeof run,
    transport: Transport,
    args: readonly string[],
    input: string,
  ): Promise<[unknown, unknown]> => {
    const there = await runStreaming(at(plain, args), { kubeconfig: away.kubeconfig, transport, input });
    const ran = await here(transport, args, input);
    const shown = ({ code, stdout, stderr }: Ran, namespace: string): object => ({
      code,
      stdout: stdout.toString(),
      // Namespace and container ids differ.
      stderr: stderr.replaceAll(namespace, "NAMESPACE").replaceAll(/[0-9a-f]{64}/g, "ID"),
    });
    return [shown(ran, delegated), shown(there, plain)];
  };

  /** Waits until streams can be opened. */
  const expectServed = (): Promise<void> =>
    eventuallyPasses(
      async () => {
        const { code, stdout } = await run("SPDY", ["exec", "web", "-c", "main", "--", "echo", "back"]);
        expect([code, stdout.toString()]).toEqual([0, "back\n"]);
      },
      { ...patient, intervalMs: 500 },
    );

  describe.each(TRANSPORTS)("streams by %s", (transport) => {
    testCarriedStreams(transport, { open, run, both });

    test.each([
      ["a container that the pod does not have", ["exec", "web", "-c", "nobody", "--", "true"]],
      ["a container that has ended", ["exec", "web", "-c", "ended", "--", "true"]],
      ["a command that is not there", ["exec", "web", "-c", "main", "--", "no-such-command"]],
      ["a pod that is not there", ["exec", "nobody", "--", "true"]],
      ["a container that has ended, attached", ["attach", "web", "-c", "ended"]],
    ])("fail as on a plain cluster: %s", async (_case, args) => {
      const [here, there] = await both(transport, args);
      expect(here).toEqual(there);
      expect(here).not.toMatchObject({ code: 0 });
    });

    test("carry large output and input whole", async () => {
      const bytes = randomBytes(LARGE);
      const store = ["exec", "-i", "web", "-c", "main", "--", "sh", "-c", "cat >/tmp/in; sha256sum </tmp/in"];
      expect((await run(transport, store, bytes)).stdout.toString()).toContain(sha256(bytes));
      const back = await run(transport, ["exec", "web", "-c", "main", "--", "cat", "/tmp/in"]);
      expect(back.code).toBe(0);
      expect(sha256(back.stdout)).toBe(sha256(bytes));
    });

    test("give a terminal the user's size, also after a change", async () => {
      const watch = "trap 'stty size' WINCH; stty size; while true; do sleep 0.2; done";
      const args = ["exec", "-it", "web", "-c", "main", "--", "sh", "-c", watch];
      using running = new StreamingKubectl(at(delegated, args), {
        kubeconfig: home.kubeconfig,
        transport,
        terminal: { rows: 33, columns: 77 },
      });
      await running.says(/33 77/);
      await running.resize(44, 88);
      await running.says(/44 88/);
    });

    test("are refused to a user whom the host's RBAC denies exec", async () => {
      const reader = `--as=system:serviceaccount:${delegated}:default`;
      const refused = await run(transport, [reader, "exec", "web", "-c", "main", "--", "true"]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/"system:serviceaccount:.*:default" cannot (get|create) resource "pods\/exec"/);
    });

    test("attach to a pod of kubectl run -i, which is gone afterwards", async () => {
      const name = uniqueName(`once-${transport.toLowerCase()}`);
      const attached = ["run", name, "--image=localhost/busybox:1", "--restart=Never", "-i", "--rm", "--quiet"];
      const { code, stdout } = await run(transport, [...attached, "--", "sort"], "b\na\n");
      expect({ code, stdout: stdout.toString() }).toEqual({ code: 0, stdout: "a\nb\n" });
      // kubectl does not wait for the deletion.
      await eventuallyPasses(async () => {
        const left = await kubectl(home, ["-n", delegated, "get", "pod", name, "--ignore-not-found"]);
        expect(left).toBe("");
      });
    });

    test("stay separate from each other", async () => {
      const words = Array.from({ length: 12 }, (_, index) => `word-${index}`);
      const said = words.map(async (word) => {
        const { code, stdout } = await run(transport, ["exec", "-i", "web", "-c", "main", "--", "cat"], word);
        return { code, stdout: stdout.toString() };
      });
      expect(await Promise.all(said)).toEqual(words.map((stdout) => ({ code: 0, stdout })));
    });
  });

  describe("WebSocket streams of the Python client", () => {
    const path = (subresource: string, query: string): string =>
      `/api/v1/namespaces/${delegated}/pods/web/${subresource}?${query}`;

    test("carry the channels, the terminal's size and the exit code of exec", async () => {
      const command = [
        "sh",
        "-c",
        "read line; echo said $line; until stty size | grep '22 99'; do sleep 0.1; done; exit 3",
      ];
      const query = command.map((part) => `command=${encodeURIComponent(part)}`).join("&");
      await using channels = new Channels(
        home,
        path("exec", `container=main&${query}&stdin=true&stdout=true&stderr=true&tty=true`),
      );
      expect(await channels.opened()).toBe("v4.channel.k8s.io");
      channels.send(0, "hello\n");
      await channels.says(1, /said hello/);
      channels.send(4, JSON.stringify({ Width: 99, Height: 22 }));
      await channels.says(1, /22 99/);
      await channels.says(3, /"reason":"NonZeroExitCode".*"message":"3"/);
      await channels.closed;
    });

    test("carry bytes and errors of port-forward in one channel each", async () => {
      await using channels = new Channels(home, path("portforward", "ports=8080"));
      await channels.opened();
      channels.send(0, "GET / HTTP/1.0\r\n\r\n");
      await channels.says(0, /hello from the pod/);
      // Each channel begins with its port.
      expect(channels.received(0).readUInt16LE()).toBe(8080);
      expect([...channels.received(1)]).toEqual([...channels.received(0).subarray(0, 2)]);
    });
  });

  test("attaches to a debug container", async () => {
    const debug = ["debug", "web", "--image=localhost/busybox:1", "-c", uniqueName("debugger"), "-i", "--quiet"];
    const running = open("WebSocket", ...debug, "--", "sh", "-c", "while read line; do echo heard: $line; done");
    await eventuallyPasses(() => {
      running.write("hello\n");
      expect(running.said).toContain("heard: hello\n");
    });
  });

  test("uses no memory for a slow reader", async () => {
    const residentMb = (): number => {
      const status = readFileSync(`/proc/${legation.controller.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    };
    const running = open("SPDY", "exec", "web", "-c", "main", "--", "cat", "/dev/zero");
    await eventually(() => running.child.stdout?.readableFlowing === true && running.received > LARGE);
    running.child.stdout?.pause();
    const before = residentMb();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(residentMb()).toBeLessThan(before + 100);
  });

  test("serves a new pod of the same name its own streams", async () => {
    const manifest = (word: string): string =>
      podManifest("again", [{ name: "main", script: `echo ${word} >/tmp/word; sleep 3600` }]);
    const word = ["exec", "again", "--", "cat", "/tmp/word"];
    for (const each of ["first", "second"]) {
      await kubectl(home, ["-n", delegated, "delete", "pod", "again", "--ignore-not-found"]);
      await kubectl(away, ["-n", plain, "delete", "pod", "again", "--ignore-not-found"]);
      await apply(manifest(each));
      await eventuallyPasses(async () => {
        expect((await run("WebSocket", word)).stdout.toString()).toBe(`${each}\n`);
      });
    }
  });

  describe("a member that does not answer", { timeout: 400_000 }, () => {
    test.each<[string, () => Promise<void>, RegExp]>([
      ["frozen", () => away.proxy.blackhole(), /cluster away (did not answer|cannot be reached)/],
      ["down", () => away.proxy.cut(), /cluster away (did not answer|cannot be reached)/],
    ])("has exec and port-forward fail within a minute while it is %s", async (_how, fault, message) => {
      onTestFinished(() => away.mend());
      await fault();
      for (const transport of TRANSPORTS) {
        for (const args of [
          ["exec", "web", "-c", "main", "--", "true"],
          ["port-forward", "pod/web", ":8080"],
        ]) {
          const refused = await run(transport, args);
          expect(refused.code).not.toBe(0);
          expect(refused.stderr).toMatch(message);
          expect(refused.seconds).toBeLessThan(55);
        }
      }
      await away.mend();
      await expectServed();
    });
  });

  test("fails a command whose member connections are cut", async () => {
    const running = open("WebSocket", "exec", "web", "-c", "main", "--", "sh", "-c", "echo begun; sleep 600");
    await running.says(/begun/);
    await away.proxy.reset();
    expect((await running.ended).code).not.toBe(0);
  });

  test("is trusted by a host that verifies kubelets once the virtual node's certificate is approved, and not before", async () => {
    expect(unapproved).toMatch(/x509: certificate signed by unknown authority/);
    const [csr] = JSON.parse(await kubectl(home, ["get", "csr", "-o", "json"])).items;
    expect(csr.spec).toMatchObject({
      signerName: "kubernetes.io/kubelet-serving",
      username: "system:serviceaccount:legation-system:legation-controller",
    });
  });

  /** Opens a followed log and a command by each protocol. */
  async function opened(): Promise<StreamingKubectl[]> {
    const beat = ["sh", "-c", "while true; do echo beat; sleep 0.5; done"];
    const streams = [
      open("SPDY", "logs", "-f", "talker"),
      ...TRANSPORTS.map((transport) => open(transport, "exec", "web", "-c", "main", "--", ...beat)),
    ];
    for (const each of streams) await each.says(/beat/);
    return streams;
  }

  /** Waits until all end; the API server may report the end of a connection as the end of the command. */
  async function expectEnded(streams: readonly StreamingKubectl[]): Promise<void> {
    await Promise.all(streams.map(({ ended }) => ended));
  }

  /** Waits until streams can be opened again through a leader, which the API server learns of before an agent does. */
  async function expectServedBy(leader: LegationProcess): Promise<void> {
    const port = await eventually(() => /"port":(\d+),"msg":"kubelet API serves"/.exec(leader.log())?.[1], patient);
    const published = "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}";
    await eventuallyPasses(
      async () => expect(await kubectl(home, ["get", "node", "legation-away", "-o", published])).toBe(port),
      PUBLISHED,
    );
    await expectServed();
  }

  test("ends streams with a leader that is terminated or paused, and opens them again through the next one", async () => {
    await apply(podManifest("talker", [{ name: "main", script: "while true; do echo beat; sleep 0.5; done" }]));
    const flags = async (identity: string): Promise<string[]> => [
      `--identity=${identity}`,
      "--lease-duration=12s",
      `--kubelet-listen=127.0.0.1:${await freePort()}`,
      ...FLAGS,
    ];
    const [second, third] = [
      await legation.another("controller", await flags("second")),
      await legation.another("controller", await flags("third")),
    ];
    onTestFinished(async () => {
      await Promise.all([second.stop("SIGKILL"), third.stop("SIGKILL")]);
      await legation.controller.start();
      await expectServed();
    });
    await second.start();
    const ofFirst = await opened();
    const startedAt = performance.now();
    await legation.controller.stop();
    expect(performance.now() - startedAt).toBeLessThan(14_000);
    await expectEnded(ofFirst);
    await expectServedBy(second);

    const ofSecond = await opened();
    await third.start();
    await second.freeze();
    await expectServedBy(third);
    // The second controller finds that its lease has expired, and exits.
    const secondEnded = second.whenEnded();
    second.thaw();
    await expectEnded(ofSecond);
    await secondEnded;
  }, 400_000);

  // Last, since the member is reached through its agent from here on.
  describe("streams through an agent", () => {
    let agent: RunningAgent;
    beforeAll(async () => {
      const { agents, hubPort } = legation;
      const behind = { name: "away", hubPort, args: [], server: away.proxiedServer, again: true };
      agent = agents.get("away") ?? (await joinBehindAgent(home, away, behind));
      await eventuallyPasses(async () => {
        expect(agent.log()).toContain("connected to the hub");
        expect((await run("SPDY", EXEC)).code).toBe(0);
      }, patient);
    });
    afterAll(() => agent?.stop());

    testCarriedStreams("WebSocket", { open, run, both });

    test("follow a log while it grows", async () => {
      await apply(podManifest("teller", [{ name: "main", script: "while true; do echo beat; sleep 0.5; done" }]));
      await open("SPDY", "logs", "-f", "teller").says(/beat\nbeat\n/);
    });

    describe.each(TRANSPORTS)("of a user of the host, in the member's own pod, by %s", (transport) => {
      let alice: HostUser;
      beforeAll(async () => {
        await legation.access();
        await openMember(home, away, "away");
        alice = await createUser(home, "alice", "developers");
        await bindClusterRole(home, "legation-access", { kind: "User", name: "alice" });
        await bindClusterRole(away, "edit", { kind: "User", name: "legation:alice" });
        await eventuallyPasses(async () => expect((await runAsAlice("SPDY", EXEC)).code).toBe(0), patient);
      });
      afterAll(cleanUpFile);

      const runAsAlice: typeof run = (protocol, args, input) =>
        runStreaming(at(plain, args), {
          kubeconfig: alice.kubeconfigOf("away"),
          transport: protocol,
          ...(input === undefined ? {} : { input }),
        });
      testCarriedStreams(transport, {
        open: (protocol, ...args) => {
          const options = { kubeconfig: alice.kubeconfigOf("away"), transport: protocol };
          const running = new StreamingKubectl(at(plain, args), options);
          onTestFinished(() => running[Symbol.dispose]());
          return running;
        },
        run: runAsAlice,
        both: (protocol, args, input = "") => compared(runAsAlice, protocol, args, input),
      });
    });

    test("end with the agent, and are refused by its name", async () => {
      const running = open("WebSocket", "exec", "web", "-c", "main", "--", "sh", "-c", "echo begun; sleep 600");
      await running.says(/begun/);
      await agent.stop();
      await running.ended;
      const { stderr } = await run("SPDY", EXEC);
      expect(stderr).toMatch(/cluster away cannot be reached: .*the agent of away left/);
    });
  });
}

whereRealNodesRun(streams);
