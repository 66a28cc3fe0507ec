import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROXY_LABEL } from "../../../../src/api/keys.ts";
import { certificatesOf } from "../../../../src/certificates/bundle.ts";
import type { FindingGroup } from "../../../../src/cli/explain/installation/finding.ts";
import type { WebhookConfiguration } from "../../../../webhook/ca-bundle.ts";
import type { Cluster } from "../../../support/clusters/types.ts";
import { delegatedPod } from "../../../support/delegated/pods.ts";
import { startWholeCertManager } from "../../../support/engines/cert-manager.ts";
import { afterFile, cleanUpFile } from "../../../support/harness/after-file.ts";
import { applyAll, kubectl } from "../../../support/harness/kubectl.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { eventuallyPasses } from "../../../support/harness/wait.ts";
import { CHART, helmOn, IMAGE_VALUES } from "../../../support/legation/chart.ts";
import { legation, runCli } from "../../../support/legation/cli.ts";
import { rolledOut, useImageHost, waitLongForWebhooks } from "../../../support/legation/image-clusters.ts";
import { annotatedNamespace, whileAdmitting } from "../../../support/webhook/admission.ts";

// The chart's webhook with a certificate of cert-manager, whose programs run on this machine.
const SYSTEM = "legation-system";
const TLS = "legation-webhook-tls";
const AUTHORITY = "legation-webhook-ca";
const CONFIGURATIONS = [
  "mutatingwebhookconfiguration/legation",
  "mutatingwebhookconfiguration/zz-legation",
  "validatingwebhookconfiguration/legation",
];
const CONNECT_MS = 5_000;
// A kubelet takes its time to bring a changed Secret to pods.
const patient = { timeoutMs: 240_000, intervalMs: 1_000 };

whereRealNodesRun(() => {
  let host: Cluster;
  let namespace: string;
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 250_000 });
  const inSystem = (...args: string[]): Promise<string> => run("-n", SYSTEM, ...args);

  async function upgrade(certificate: object): Promise<void> {
    // The tests have set timeouts of webhooks.
    const args = ["upgrade", "legation", CHART, "--reset-then-reuse-values", "--force-conflicts", "--values=-"];
    await helmOn(host, args, { values: { webhook: { certificate } } });
    await waitLongForWebhooks(host);
    await rolledOut(host, "webhook", "controller");
  }

  /** Returns a key of a Secret. */
  async function read(secret: string, key: "tls.crt" | "ca.crt"): Promise<string> {
    const { data } = JSON.parse(await inSystem("get", `secret/${secret}`, "-o", "json"));
    return Buffer.from(data[key], "base64").toString("utf8");
  }

  /** Returns the authorities that each webhook entry trusts. */
  async function trusted(): Promise<string[][]> {
    const { items } = JSON.parse(await run("get", ...CONFIGURATIONS, "-o", "json"));
    return (items as WebhookConfiguration[])
      .flatMap(({ webhooks = [] }) => webhooks)
      .map(({ clientConfig }) => certificatesOf(Buffer.from(clientConfig.caBundle ?? "", "base64").toString("utf8")));
  }

  /** Returns the certificates that the webhook's pods serve. */
  async function served(): Promise<string[]> {
    const { items } = JSON.parse(await inSystem("get", "pods", "-lapp.kubernetes.io/component=webhook", "-o", "json"));
    const running = (items as WebhookPod[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return Promise.all(running.map(({ status }) => servedAt(status.podIP)));
  }

  async function serves(certificate: string): Promise<void> {
    await eventuallyPasses(async () => expect(await served()).toEqual([certificate, certificate]), patient);
  }

  /** Waits until the Secret has another certificate, and pods serve it. */
  async function renewed(before: string): Promise<string> {
    await eventuallyPasses(async () => expect(await read(TLS, "tls.crt")).not.toBe(before), patient);
    await inSystem("wait", "certificate/legation-webhook", "--for=condition=Ready", "--timeout=60s");
    const certificate = await read(TLS, "tls.crt");
    await serves(certificate);
    return certificate;
  }

  const renewAuthority = (): Promise<string> => inSystem("delete", "secret", AUTHORITY, TLS);

  beforeAll(async () => {
    host = await useImageHost();
    const certManager = await startWholeCertManager(host);
    afterFile(() => certManager.stop());
    const values = { ...IMAGE_VALUES, webhook: { certificate: { source: "cert-manager" } } };
    await helmOn(host, ["install", "legation", CHART, "--create-namespace", "--values=-"], { values });
    await waitLongForWebhooks(host);
    await rolledOut(host, "webhook", "controller");
    namespace = await annotatedNamespace(host, "certified");
  }, 900_000);
  afterAll(cleanUpFile);

  test("serves with the Secret of its Certificate, and makes a proxy of a pod that asks", async () => {
    await inSystem("wait", "certificates", "--all", "--for=condition=Ready", "--timeout=60s");
    await serves(await read(TLS, "tls.crt"));
    const authority = await read(TLS, "ca.crt");
    expect(authority).toBe(await read(AUTHORITY, "tls.crt"));
    for (const authorities of await trusted()) expect(authorities).toEqual([authority]);
    await applyAll(host, [delegatedPod(namespace, "first")]);
    const { metadata, spec } = JSON.parse(await run("-n", namespace, "get", "pod/first", "-o", "json"));
    expect(metadata.labels).toHaveProperty([PROXY_LABEL]);
    expect(spec.schedulerName).toBe("legation");
  }, 300_000);

  test("is sound to `legation doctor`", async () => {
    const { stdout } = await runCli(["doctor", "-o", "json", `--kubeconfig=${host.kubeconfig}`]);
    const { groups } = JSON.parse(stdout) as { groups: readonly FindingGroup[] };
    const told = groups
      .flatMap(({ findings }) => findings)
      .filter(({ what }) => /webhook's certificate|caBundle/.test(what));
    expect(told).toHaveLength(4);
    for (const { state, what } of told) expect(state, what).toBe("OK");
    expect(JSON.stringify(told)).toContain(`Secret ${SYSTEM}/${TLS}`);
  });

  test.each<[string, () => Promise<string>]>([
    ["its Secret is deleted", () => inSystem("delete", "secret", TLS)],
    [
      "`cmctl renew` asks for another",
      () => {
        const value = { type: "Issuing", status: "True", reason: "ManuallyTriggered", message: "by hand" };
        const patch = JSON.stringify([{ op: "add", path: "/status/conditions/-", value }]);
        const how = ["--subresource=status", "--type=json", `--patch=${patch}`];
        return inSystem("patch", "certificate/legation-webhook", ...how);
      },
    ],
    ["its authority is replaced", renewAuthority],
  ])(
    "renews its certificate without a pod refused when %s",
    async (_when, renew) => {
      const [certificate, authority] = [await read(TLS, "tls.crt"), await read(TLS, "ca.crt")];
      await whileAdmitting(host, namespace, async () => {
        await renew();
        await renewed(certificate);
      });
      const authorities = new Set([await read(TLS, "ca.crt"), authority]);
      expect(authorities).toHaveLength(renew === renewAuthority ? 2 : 1);
      for (const each of await trusted()) expect(each).toEqual(expect.arrayContaining([...authorities]));
    },
    600_000,
  );

  test("leaves the caBundle to cert-manager's injector, as the page on certificates says", async () => {
    const source = "cert-manager.io/inject-ca-from";
    await inSystem("set", "env", "deployment/legation-webhook", "LEGATION_CA_BUNDLE_FILE-");
    await rolledOut(host, "webhook", "controller");
    await run("annotate", ...CONFIGURATIONS, `${source}=${SYSTEM}/legation-webhook`);
    const certificate = await read(TLS, "tls.crt");
    await whileAdmitting(host, namespace, async () => {
      await renewAuthority();
      await renewed(certificate);
    });
    const authority = await read(TLS, "ca.crt");
    for (const authorities of await trusted()) expect(authorities).toContain(authority);
    const managers = await run("get", ...CONFIGURATIONS, "--show-managed-fields", "-o", "json");
    expect(managers).toContain('"manager": "cert-manager-cainjector"');
    await run("annotate", ...CONFIGURATIONS, `${source}-`);
  }, 600_000);

  test("goes to a certificate of its own and back by upgrades, without a pod refused", async () => {
    await upgrade({ source: "cert-manager" });
    await whileAdmitting(host, namespace, async () => {
      await upgrade({ source: "self" });
      await serves(await read("legation-webhook-certificate", "tls.crt"));
      expect(await inSystem("get", "issuers,certificates", "-o", "name")).toBe("");
      expect(await inSystem("get", "secrets", "-o", "name")).toContain(`secret/${TLS}\n`);
      await upgrade({ source: "cert-manager" });
      await serves(await read(TLS, "tls.crt"));
    });
  }, 900_000);

  test("takes the certificate of an issuer that is there, without a pod refused", async () => {
    await applyAll(host, company(), ["-n", SYSTEM]);
    await inSystem("wait", "issuer/company", "--for=condition=Ready", "--timeout=60s");
    const certificate = await read(TLS, "tls.crt");
    await whileAdmitting(host, namespace, async () => {
      await upgrade({ source: "cert-manager", issuerRef: { kind: "Issuer", name: "company" } });
      await renewed(certificate);
    });
    expect(await read(TLS, "ca.crt")).toBe(await read("company", "tls.crt"));
    expect(await inSystem("get", "issuers", "-o", "name")).not.toContain("legation-webhook");
  }, 600_000);

  test("is removed by `legation uninstall` with its Certificates and Secrets", async () => {
    await run("delete", "namespace", namespace, "--timeout=200s");
    await legation(["uninstall", `--kubeconfig=${host.kubeconfig}`]);
    expect(await run("get", "namespaces", "-o", "name")).not.toContain("namespace/legation");
    expect(await run("get", "issuers,certificates", "-A", "-o", "name")).toBe("");
  }, 300_000);
});

/** Returns an issuer with an authority, as a company has it. */
function company(): object[] {
  const of = (kind: string, name: string, spec: object): object => ({
    apiVersion: "cert-manager.io/v1",
    kind,
    metadata: { name },
    spec,
  });
  const authority = { isCA: true, commonName: "company", secretName: "company", issuerRef: { name: "root" } };
  return [
    of("Issuer", "root", { selfSigned: {} }),
    of("Certificate", "company", authority),
    of("Issuer", "company", { ca: { secretName: "company" } }),
  ];
}

/** The fields of a webhook's pod that are read. */
interface WebhookPod {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly status: { readonly podIP: string };
}

/** Returns the certificate with which an address serves, PEM. */
function servedAt(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: 8443, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error(`${address}: serves without a certificate`));
      else resolve(certificate.toString());
    });
    // A pod may end meanwhile.
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error(`${address}: no answer`)));
    socket.on("error", reject);
  });
}
