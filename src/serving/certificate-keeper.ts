import { readFile } from "node:fs/promises";
import { addToBundle, certificatesOf } from "../certificates/bundle.ts";
import type { Certificate } from "../certificates/issue.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CertificateSecret, caBundleOf, ensureOwnMaterial, type OwnMaterial } from "./certificate-secret.ts";

/** The source of the serving certificate. */
export type TlsSource =
  /** Legation's own authority in a Secret. `hosts` adds names to those that API servers call. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that another controller renews, such as cert-manager's mounted Secret. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };

/** The serving certificate, and the authorities that Legation publishes for it. */
interface Material {
  readonly certificate: Certificate;
  readonly caBundle: string | undefined;
}

/** The objects on the host that tell API servers where a server is, and whom to trust for it. */
export interface Callers {
  /** False if none of the objects is installed. */
  readonly installed: boolean;
  /** DNS names and addresses that API servers call, for the certificate. */
  readonly hosts: readonly string[];
}

/** Returns the bundle that an object must trust, from its present one: PEM, or empty. */
export type Trust = (trusted: string) => string;

export interface CertificateKeeperOptions {
  readonly source: TlsSource;
  readonly secret: CertificateSecret;
  /** Updates the `caBundle` of the callers where needed. Without `trust` another writer, such as cert-manager's injector, owns it. */
  readonly publish: (trust: Trust | undefined, signal: AbortSignal) => Promise<Callers>;
  readonly client: ClusterClient;
  readonly clock: Pick<Clock, "wall" | "after">;
  readonly log: Logger;
}

// Polls fast until API servers trust the server, then slowly.
const EAGER_MS = 1_000;
const CALM_MS = 10_000;
// API servers learn of a new authority by a watch, not all at once.
const TRUST_MS = 5_000;

/** Keeps the serving certificate valid, and trusted by API servers, while the server runs. */
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

  /** Reports whether API servers are told to trust this server. */
  get trusted(): boolean {
    return this.#trusted;
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
    const { publish, log } = this.#options;
    let next = await this.#read();
    const { installed, hosts } = await publish(this.#trustOf(next), this.#abort.signal);
    if (hosts.some((host) => !this.#hosts.includes(host))) {
      this.#hosts = hosts;
      next = await this.#read();
      await publish(this.#trustOf(next), this.#abort.signal);
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
    const { source, secret, client, clock } = this.#options;
    if (source.kind === "own") {
      const hosts = [...new Set([...source.hosts, ...this.#hosts])];
      const { signal } = this.#abort;
      this.#own = await ensureOwnMaterial(client, { secret, hosts, now: clock.wall(), served: this.#own, signal });
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
