import { readFile } from "node:fs/promises";
import { addToBundle, certificatesOf } from "../src/certificates/bundle.ts";
import type { Certificate } from "../src/certificates/issue.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import type { Logger } from "../src/telemetry/logger.ts";
import { ensureCaBundle, type Trust } from "./ca-bundle.ts";
import type { WebhookClock } from "./clock.ts";
import { caBundleOf, ensureOwnMaterial, type OwnMaterial } from "./serving-certificate.ts";

/** The source of the serving certificate. */
export type TlsSource =
  /** Legation's own authority in a Secret. `hosts` adds names to those that the webhook configurations call. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that another controller renews, such as cert-manager's mounted Secret. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };

/** The serving certificate, and the authorities that Legation publishes for it. */
interface Material {
  readonly certificate: Certificate;
  readonly caBundle: string | undefined;
}

export interface CertificateKeeperOptions {
  readonly source: TlsSource;
  readonly client: ClusterClient;
  readonly clock: WebhookClock;
  readonly log: Logger;
}

// Polls fast until the configurations trust the webhook, then slowly.
const EAGER_MS = 1_000;
const CALM_MS = 10_000;
// API servers learn of a new authority by a watch, not all at once.
const TRUST_MS = 5_000;

/** Keeps the serving certificate valid and trusted while the webhook runs. */
export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions;
  readonly #abort = new AbortController();
  #own: OwnMaterial | undefined;
  #serving: Material | undefined;
  #hosts: readonly string[] = [];
  #trusted = false;
  #timer: { cancel(): void } | undefined;

  constructor(options: CertificateKeeperOptions) {
    this.#options = options;
  }

  async load(): Promise<Certificate> {
    this.#serving = await this.#read();
    return this.#serving.certificate;
  }

  /** Returns why API servers do not trust this webhook yet. */
  notReady(): string | undefined {
    return this.#trusted ? undefined : "Legation's webhook configurations are missing or do not trust this webhook yet";
  }

  /** Runs until closed and calls `serve` with each new certificate. Resolves after the first check. */
  async follow(serve: (certificate: Certificate) => void): Promise<void> {
    const { clock, log } = this.#options;
    try {
      await this.#refresh(serve);
    } catch (error) {
      // The served certificate stays valid for a third of its life.
      if (!this.#abort.signal.aborted) log.warn({ err: error }, "serving certificate not checked");
    }
    if (this.#abort.signal.aborted) return;
    this.#timer = clock.after(this.#trusted ? CALM_MS : EAGER_MS, () => void this.follow(serve));
  }

  close(): void {
    this.#abort.abort();
    this.#timer?.cancel();
  }

  async #refresh(serve: (certificate: Certificate) => void): Promise<void> {
    const { client, log } = this.#options;
    let next = await this.#read();
    const { installed, hosts } = await ensureCaBundle(client, this.#trustOf(next), this.#abort.signal);
    if (hosts.some((host) => !this.#hosts.includes(host))) {
      this.#hosts = hosts;
      next = await this.#read();
      await ensureCaBundle(client, this.#trustOf(next), this.#abort.signal);
    }
    if (next.certificate.cert !== this.#serving?.certificate.cert) {
      // A certificate served before it is trusted fails every call.
      if (this.#trusted && next.caBundle !== this.#serving?.caBundle) await this.#pause(TRUST_MS);
      serve(next.certificate);
      log.info("serving certificate renewed");
    }
    this.#serving = next;
    this.#trusted = installed;
  }

  async #read(): Promise<Material> {
    const { source, client, clock } = this.#options;
    if (source.kind === "own") {
      const hosts = [...new Set([...source.hosts, ...this.#hosts])];
      const { signal } = this.#abort;
      this.#own = await ensureOwnMaterial(client, { hosts, now: clock.wall(), served: this.#own, signal });
      return { certificate: this.#own.certificate, caBundle: caBundleOf(this.#own) };
    }
    const [cert, key] = await Promise.all([readFile(source.certFile, "utf8"), readFile(source.keyFile, "utf8")]);
    // Read last: a new certificate never meets an older authority.
    return { certificate: { cert, key }, caBundle: await readCaFile(source.caFile) };
  }

  /** Keeps authorities of other replicas, which may serve under files or a Secret that this one has not read. */
  #trustOf({ caBundle }: Material): Trust | undefined {
    if (caBundle === undefined) return undefined;
    return (trusted) => addToBundle(trusted, caBundle, this.#options.clock.wall());
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(ms, resolve);
      this.#abort.signal.addEventListener("abort", () => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** Reads the authorities to trust. An empty bundle would trust every authority of the machine. */
async function readCaFile(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const caBundle = await readFile(file, "utf8");
  if (certificatesOf(caBundle).length > 0) return caBundle;
  throw new Error(`--ca-bundle-file ${file}: holds no certificate; write the issuer's, as PEM`);
}
