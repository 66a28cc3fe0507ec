import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";
import { Authority } from "../clusters/pki.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { type EngineProgram, startProgram } from "./run.ts";

/** An engine that is one controller with webhooks, as its own manifests install it. */
export interface OperatorOptions {
  readonly host: Cluster;
  /** Program of the controller. */
  readonly program: string;
  /** Folder of its kustomization. */
  readonly manifests: string;
  /** A folder of its own for its files. */
  readonly directory: string;
}

/** A controller that runs on this machine, and what it installed on the host. */
export interface Operator {
  /** Removes its kinds with all their objects, then the rest, and ends it. */
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: manifests of others, of which a few fields are changed
type Manifest = any;

const WEBHOOKS = /^(Mutating|Validating)WebhookConfiguration$/;
// The operator's program runs on this machine, without its aggregated API.
const LEFT_OUT: ReadonlySet<string> = new Set(["Deployment", "APIService"]);

function toThisMachine(document: Manifest, port: number, caBundle: string): Manifest {
  const point = (config: Manifest): void => {
    if (config?.service === undefined) return;
    config.service.port = port;
    config.caBundle = caBundle;
  };
  if (WEBHOOKS.test(document.kind)) for (const webhook of document.webhooks) point(webhook.clientConfig);
  if (document.kind === "CustomResourceDefinition") point(document.spec.conversion?.webhook?.clientConfig);
  if (document.kind !== "Service") return document;
  const { apiVersion, kind, metadata } = document;
  return { apiVersion, kind, metadata, spec: { type: "ExternalName", externalName: "localhost" } };
}

function settingsOf(documents: readonly Manifest[]): Manifest {
  const map = documents.find(({ kind, data }) => kind === "ConfigMap" && data["controller_manager_config.yaml"]);
  return parse(map.data["controller_manager_config.yaml"]);
}

/** Makes the serving certificate of its webhooks; resolves to its authority as webhook configurations take it. */
async function certify(documents: readonly Manifest[], folder: string): Promise<string> {
  const service = documents.find(({ kind }) => WEBHOOKS.test(kind)).webhooks[0].clientConfig.service;
  const authority = await Authority.create("engine");
  const name = `${service.name}.${service.namespace}.svc`;
  const issued = await authority.issue({ commonName: name, usage: "serverAuth", dnsNames: [name] });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "tls.crt"), issued.certificate);
  writeFileSync(join(folder, "tls.key"), issued.key);
  return Buffer.from(authority.pem).toString("base64");
}

/** Installs an engine's manifests on the host, except its Deployment, and starts its controller here with its own configuration. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { host, program, manifests, directory } = options;
  const rendered = await kubectl(host, ["kustomize", manifests]);
  const documents: Manifest[] = parseAllDocuments(rendered).map((document) => document.toJSON());
  const [port, health] = [await freePort(), await freePort()];
  const certDir = join(directory, "certificates");
  const caBundle = await certify(documents, certDir);
  const settings = {
    ...settingsOf(documents),
    leaderElection: { leaderElect: false },
    internalCertManagement: { enable: false },
    webhook: { port, certDir },
    metrics: { bindAddress: "0" },
    health: { healthProbeBindAddress: `127.0.0.1:${health}` },
  };
  const settingsFile = join(directory, "settings.yaml");
  writeFileSync(settingsFile, stringify(settings));
  const items = documents.filter(({ kind }) => !LEFT_OUT.has(kind)).map((each) => toThisMachine(each, port, caBundle));
  const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  const installed = { host, list, kinds: documents.filter(({ kind }) => kind === "CustomResourceDefinition") };
  let started: EngineProgram | undefined;
  try {
    await kubectl(host, ["apply", "--server-side", "--force-conflicts", "-f", "-"], { input: list });
    started = startProgram(program, [`--config=${settingsFile}`], {
      env: { ...process.env, KUBECONFIG: host.kubeconfig },
      cwd: directory,
      logFile: join(directory, "log"),
    });
    await serves(health);
  } catch (error) {
    await remove({ ...installed, kinds: [] }, started);
    throw new Error(`${String(error)}:\n${started?.output().slice(-4000)}`);
  }
  return { stop: () => remove(installed, started) };
}

/** Waits until the controller is ready. */
async function serves(health: number): Promise<void> {
  await eventually(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok, {
    timeoutMs: 120_000,
    intervalMs: 500,
    what: "the engine's controller",
  });
}

/** Objects of its kinds go while it runs and can let go of them. Its webhooks go in any case: nothing else could be made on the host. */
async function remove(
  { host, kinds, list }: { readonly host: Cluster; readonly kinds: readonly Manifest[]; readonly list: string },
  started: EngineProgram | undefined,
): Promise<void> {
  try {
    if (kinds.length > 0) await kubectl(host, ["delete", "crd", ...kinds.map(({ metadata }) => metadata.name)]);
  } finally {
    started?.kill("SIGTERM");
    await started?.ended;
    await kubectl(host, ["delete", "--wait=false", "--ignore-not-found", "-f", "-"], { input: list });
  }
}
