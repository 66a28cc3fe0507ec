import { COPY_LABEL, COPY_LABEL_VALUE, HOST_LABEL } from "../../api/keys.ts";
import { objectKey, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { type DependencyKey, type DependencyKind, dependencyKey } from "../../pods/dependencies.ts";
import { isCopy } from "../../pods/dependencies-copy.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { digested, forEachKind, RESOURCES, withoutContent } from "./digest.ts";
import type { Digested } from "./model.ts";

export interface CopiesOptions {
  readonly hostId: string;
  /** A copy came, changed or went. */
  readonly onCopy: (member: Member, key: DependencyKey) => void;
  /** A member's copies have been read. */
  readonly onRead: (member: Member) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

type Reflectors = ReadonlyMap<DependencyKind, Reflector<Digested>>;

/** The copies in all members, without their content. */
export class Copies {
  readonly #options: CopiesOptions;
  readonly #members = new Map<Member, Reflectors>();

  constructor(options: CopiesOptions) {
    this.#options = options;
  }

  /** Watches these members and no others. */
  follow(members: readonly Member[]): void {
    for (const [member, reflectors] of this.#members) {
      if (members.includes(member)) continue;
      this.#members.delete(member);
      for (const reflector of reflectors.values()) void reflector.stop();
    }
    for (const member of members) {
      if (this.#members.has(member)) continue;
      const reflectors = forEachKind((kind) => this.#reflector(member, kind));
      this.#members.set(member, reflectors);
      for (const reflector of reflectors.values()) reflector.start();
      void Promise.all([...reflectors.values()].map((reflector) => reflector.whenSynced())).then(() =>
        this.#options.onRead(member),
      );
    }
  }

  async stop(): Promise<void> {
    const all = [...this.#members.values()].flatMap((reflectors) => [...reflectors.values()]);
    await Promise.all(all.map((reflector) => reflector.stop()));
  }

  /** The member's copies have been listed since it was connected. */
  read(member: Member): boolean {
    const reflectors = this.#members.get(member);
    return reflectors !== undefined && [...reflectors.values()].every(({ store }) => store.synced);
  }

  of(member: Member, kind: DependencyKind, namespace: string, name: string): Stored<Digested> | undefined {
    const found = this.#members.get(member)?.get(kind)?.store.get(objectKey({ namespace, name }));
    return found !== undefined && isCopy(found, this.#options.hostId) ? found : undefined;
  }

  /** Names of all copies in a member. */
  in(member: Member): DependencyKey[] {
    return [...(this.#members.get(member) ?? [])].flatMap(([kind, { store }]) =>
      store.list().map(({ metadata }) => keyOf(kind, metadata)),
    );
  }

  #reflector(member: Member, kind: DependencyKind): Reflector<Digested> {
    const { hostId, onCopy, clock } = this.#options;
    return new Reflector<Digested>({
      client: member.client,
      resource: RESOURCES[kind],
      labelSelector: `${HOST_LABEL}=${hostId},${COPY_LABEL}=${COPY_LABEL_VALUE}`,
      transform: (object) => withoutContent(digested(kind, object)),
      clock,
      log: this.#options.log.child({ member: member.name }),
      onEvent: ({ object }) => onCopy(member, keyOf(kind, object.metadata)),
    });
  }
}

function keyOf(kind: DependencyKind, { namespace = "", name }: { namespace?: string; name: string }): DependencyKey {
  return dependencyKey({ kind, namespace, name });
}
