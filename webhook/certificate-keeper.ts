import { readFile } from "node:fs/promises";
import { addToBundle, certificatesOf } from "../src/certificates/bundle.ts";
import type { Certificate } from "../src/certificates/issue.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import type { Logger } from "../src/telemetry/logger.ts";
import { ensureCaBundle, type Trust } from "./ca-bundle.ts";
import type { WebhookClock } from "./clock.ts";
import { caBundleOf, ensureOwnMaterial, type OwnMaterial } from "./serving-certificate.ts";

/** Where the serving certificate comes from. */
export type TlsSource =
  /**
   * Legation's own authority, kept in a Secret; `hosts` are names and addresses beside those that the webhook
   * configurations call.
   */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that somebody else keeps current, such as a Secret of cert-manager's that is mounted. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };

/** What a replica serves with, and what the API server must trust, if that is told by us. */
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

// A configuration that was installed after the webhook started is trusted soon; once it is, a look now and then is enough.
const EAGER_MS = 1_000;
const CALM_MS = 10_000;
// API servers learn of a new authority by a watch; several of them need not do so at once.
const TRUST_MS = 5_000;

/** Keeps the serving certificate valid and the webhook configurations trusting it, while the webhook runs. */
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

  /** The certificate to start with. Rejects when there is none to be had. */
  async load(): Promise<Certificate> {
    this.#serving = await this.#read();
    return this.#serving.certificate;
  }

  /** Why API servers would not trust this webhook; undefined when they do. */
  notReady(): string | undefined {
    return this.#trusted ? undefined : "Legation's webhook configurations are missing or do not trust this webhook yet";
  }

  /** Goes on until closed; `serve` is called with each new certificate. Resolves after the first look. */
  async follow(serve: (certificate: Certificate) => void): Promise<void> {
    const { clock, log } = this.#options;
    try {
      await this.#refresh(serve);
    } catch (error) {
      // What is served stays good for a third of its life.
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
      // Served before it is trusted, it would fail every call.
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
      this.#own = await ensureOwnMaterial(client, { hosts, now: clock.wall(), held: this.#own, signal });
      return { certificate: this.#own.certificate, caBundle: caBundleOf(this.#own) };
    }
    const [cert, key] = await Promise.all([readFile(source.certFile, "utf8"), readFile(source.keyFile, "utf8")]);
    // Last: files that change in between leave an earlier certificate with its authority's successor, never a new one with an
    // authority that is not its own.
    return { certificate: { cert, key }, caBundle: await readCaFile(source.caFile) };
  }

  /**
   * Other replicas may serve under authorities that this one does not know: with files of their own, with a Secret that has been
   * made anew, or renewed since this one read it.
   */
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

/** What API servers must trust, if a file says so. An empty bundle would make them trust every authority of their machines. */
async function readCaFile(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const caBundle = await readFile(file, "utf8");
  if (certificatesOf(caBundle).length > 0) return caBundle;
  throw new Error(`--ca-bundle-file ${file}: holds no certificate; write the issuer's, as PEM`);
}
