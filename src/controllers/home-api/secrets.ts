import { HOME_API_LABEL, HOME_API_LABEL_VALUE, HOST_LABEL } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Secret, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { MemberWatches } from "../../clusters/member-watches.ts";
import { heapBytesOfObject } from "../../kube/json.ts";
import { secrets } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { apiSecretName } from "../../pods/home-api.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { Reflector, type Rest } from "../../runtime/reflector.ts";

export interface MemberSecretsOptions extends ControllerOptions {
  readonly hostId: string;
  readonly onSecret: (key: ObjectKey) => void;
  readonly onRead: (member: Member) => void;
}

/** Watches the Secrets with delegates' tokens in all members, without the tokens. */
export class MemberSecrets {
  readonly #options: MemberSecretsOptions;
  readonly #watches: MemberWatches<Reflector<Secret>>;

  constructor(options: MemberSecretsOptions) {
    this.#options = options;
    this.#watches = new MemberWatches((member, rest) => this.#reflector(member, rest));
  }

  follow(members: readonly Member[]): void {
    this.#watches.follow(members);
  }

  async stop(): Promise<void> {
    await this.#watches.stop();
  }

  /** Reports whether the member's Secrets were listed since it was connected, and hurries that list. */
  read(member: Member): boolean {
    const watch = this.#watches.of(member);
    watch?.hurry();
    return watch?.store.synced ?? false;
  }

  /** Has the member's Secrets watched, since one is about to be created. */
  need(member: Member): void {
    this.#watches.of(member)?.need();
  }

  of(member: Member, namespace: string, proxyUid: string): Stored<Secret> | undefined {
    return this.#watches.of(member)?.store.get(objectKey({ namespace, name: apiSecretName(proxyUid) }));
  }

  #reflector(member: Member, rest: Rest): Reflector<Secret> {
    const { hostId, onSecret, onRead, clock, log } = this.#options;
    const reflector = new Reflector({
      client: member.client,
      resource: secrets,
      labelSelector: `${HOST_LABEL}=${hostId},${HOME_API_LABEL}=${HOME_API_LABEL_VALUE}`,
      transform: withoutData,
      budget: member.memory,
      sizeOf: heapBytesOfObject,
      rest,
      clock,
      log: log.child({ member: member.name }),
      onEvent: ({ object }) => {
        const owner = ownerOf(object);
        if (owner !== undefined) onSecret(objectKey(owner));
      },
    });
    void reflector.whenSynced().then(() => onRead(member));
    return reflector;
  }
}

/** Drops the tokens: no code here reads them again. */
function withoutData({ data: _, ...secret }: Stored<Secret>): Stored<Secret> {
  return secret;
}
