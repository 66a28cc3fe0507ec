import { createHash } from "node:crypto";
import type { ObjectKey } from "../../api/kubernetes.ts";
import { RELAY_PORTS } from "../../api/relay.ts";

/**
 * The replicas' ports that relayed Services have. Each is recorded in the Service's EndpointSlices, and kept from the moment when it
 * is chosen: a second Service must not get it before the watch shows the first one's slice.
 */
export class PortRecord {
  readonly #owners = new Map<number, ObjectKey>();
  readonly #ports = new Map<ObjectKey, ReadonlyMap<string, number>>();

  /** Returns the port of each name: the recorded one, unless another Service has that, or a free one. Absent if none is free. */
  assign(
    service: ObjectKey,
    names: readonly string[],
    recorded: ReadonlyMap<string, number>,
  ): ReadonlyMap<string, number> {
    const before = this.#ports.get(service) ?? recorded;
    this.release(service);
    const ports = new Map<string, number>();
    for (const name of names) {
      const kept = before.get(name) ?? recorded.get(name);
      const port = kept !== undefined && this.#isFree(kept) ? kept : this.#free(`${service} ${name}`);
      if (port === undefined) continue;
      ports.set(name, port);
      this.#owners.set(port, service);
    }
    this.#ports.set(service, ports);
    return ports;
  }

  /** Keeps what an earlier leader has recorded, before any Service is given a port. */
  remember(service: ObjectKey, recorded: ReadonlyMap<string, number>): void {
    if (!this.#ports.has(service)) this.assign(service, [...recorded.keys()], recorded);
  }

  release(service: ObjectKey): void {
    for (const port of this.#ports.get(service)?.values() ?? []) this.#owners.delete(port);
    this.#ports.delete(service);
  }

  #isFree(port: number): boolean {
    const isInRange = port >= RELAY_PORTS.first && port < RELAY_PORTS.first + RELAY_PORTS.count;
    return isInRange && !this.#owners.has(port);
  }

  /** Begins at the hash of the name: a Service whose slices were deleted probably gets its port again. */
  #free(name: string): number | undefined {
    const start = createHash("sha1").update(name).digest().readUInt32BE(0);
    for (let at = 0; at < RELAY_PORTS.count; at += 1) {
      const port = RELAY_PORTS.first + ((start + at) % RELAY_PORTS.count);
      if (this.#isFree(port)) return port;
    }
    return undefined;
  }
}
