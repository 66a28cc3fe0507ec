import type { AnyObject } from "../../api/delegated-type.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { definitionKind, whyNotFollowing, whyNotServed } from "../../copies/definitions.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import type { Source } from "../../copies/source.ts";
import { Copier } from "../copying/copier.ts";
import { shortDigest } from "../copying/digests.ts";
import type { CopyRef, ObjectName } from "../copying/model.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";

export interface DefinitionFollowerOptions extends Omit<PodCopierOptions, "proxies" | "events"> {
  /** `problems` may have another answer. */
  readonly onChange: () => void;
}

// No decision deletes a definition, which would delete all objects of its type.
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** Keeps the members' copies of one CustomResourceDefinition. The copier writes them. */
export class DefinitionFollower {
  readonly #options: DefinitionFollowerOptions;
  readonly #kind: CopiedKind<AnyObject>;
  readonly #name: ObjectName;
  readonly #copier: Copier<AnyObject>;

  constructor(name: string, options: DefinitionFollowerOptions) {
    this.#options = options;
    this.#kind = definitionKind(name, shortDigest);
    const { kind } = this.#kind.resource;
    this.#name = { kind, namespace: "", name };
    const { onChange, registry } = options;
    this.#copier = new Copier<AnyObject>({
      ...options,
      name: "definition-copies",
      kinds: [this.#kind],
      clause: "",
      users: {
        areKnown: () => this.#copier.sources.isRead(kind, ""),
        use: (_member, _ref, source) => ({
          demand: source.state === "present" ? "needed" : "kept",
          outlivesSource: true,
        }),
        anyNeeds: () => true,
        sourceFor: (member, _ref, source) => this.#sourceFor(member, source),
        onCopy: onChange,
        onSource: onChange,
        onSources: () => {
          for (const member of registry.members()) this.#copier.onMember(member);
          onChange();
        },
        onMember: (member) => this.#enqueue(member),
        onMemberState: onChange,
      },
      beforeDelete: () => Promise.resolve(NEVER_MS),
    });
  }

  start(): void {
    this.#copier.sources.need(this.#name.kind, "");
    this.#copier.onMembers();
  }

  stop(): Promise<void> {
    return this.#copier.stop();
  }

  onMembers(): void {
    this.#copier.onMembers();
    for (const member of this.#options.registry.members()) this.#enqueue(member);
    this.#options.onChange();
  }

  onConnection(member: Member): void {
    if (member.reachable) this.#copier.onMember(member);
    this.#options.onChange();
  }

  /** Returns why members that answer do not have the host's definition. Undefined until host and members were read. */
  problems(): readonly string[] | undefined {
    const { sources, copies } = this.#copier;
    const failure = sources.failure(this.#name.kind, "");
    if (failure !== undefined) return [failure];
    if (!sources.isRead(this.#name.kind, "")) return undefined;
    const source = sources.of(this.#name);
    if (source.state === "missing") return [`this cluster has no CustomResourceDefinition ${this.#name.name}`];
    const members = this.#options.registry.members().filter(({ reachable }) => reachable);
    if (members.some((member) => copies.isBeingRead(member))) return undefined;
    return members.flatMap((member) => {
      const problem = this.#problemIn(member);
      return problem === undefined ? [] : [`${member.name}: ${problem}`];
    });
  }

  #problemIn(member: Member): string | undefined {
    const { copies } = this.#copier;
    const unread = copies.failing(member);
    if (unread !== undefined) return `its CustomResourceDefinition cannot be read: ${unread}`;
    const source = this.#copier.sourceFor(member, this.#name);
    if (source.state === "unknown") return source.message;
    const copy = this.#copyIn(member);
    const { refusal } = this.#copier.standing(member, this.#name);
    if (refusal !== undefined) return refusal.message;
    return copy === undefined ? "it has no CustomResourceDefinition yet" : whyNotServed(copy);
  }

  #sourceFor(member: Member, source: Source<AnyObject>): Source<AnyObject> {
    if (source.state !== "present") return source;
    const message = whyNotFollowing(source.object, this.#copyIn(member));
    return message === undefined ? source : { state: "unknown", message };
  }

  #copyIn(member: Member): Stored<AnyObject> | undefined {
    const { kind, namespace, name } = this.#name;
    return this.#copier.copies.of(member, kind, namespace, name);
  }

  #enqueue(member: Member): void {
    const ref: CopyRef = { member: member.name, ...this.#name };
    this.#copier.enqueue(ref);
  }
}
