import type { ObjectRef, Pod, Secret, Stored } from "../../api/kubernetes.ts";

/** A proxy's delegate in one member, and the Secret with its tokens. */
export interface DelegateView {
  readonly member: string;
  /** The API server answers, and its Secrets have been read. */
  readonly readable: boolean;
  readonly delegate: Stored<Pod>;
  /** The Secret without its data. */
  readonly secret?: Stored<Secret>;
  /** End of the hold while another manager in the member keeps changing the Secret; epoch ms. Absent: not held. */
  readonly leftUntil?: number;
}

/** Tokens of one delegate, as their issuer remembers them. */
export interface IssuedTokens {
  readonly delegateUid: string;
  /** Renewal by the monotonic clock; ms. */
  readonly renewAt: number;
  /** Renewal by the machine's clock, which runs while the machine is suspended and may be set; epoch ms. */
  readonly renewAtWall: number;
  /** Renewal by the host's clock, as in the Secret's annotation for the next leader (RFC 3339). */
  readonly noted: string;
}

/** Everything that one decision depends on. */
export interface Observed {
  readonly ref: ObjectRef;
  readonly proxy: Stored<Pod>;
  readonly delegates: readonly DelegateView[];
  /** Tokens that this process issued last. */
  readonly issued?: IssuedTokens;
  /** End of the hold on requests for tokens; epoch ms. */
  readonly notBefore?: number;
  /** Reason why the delegate has no token, though its author has not declined one. Absent if it was told lately. */
  readonly untold?: { readonly member: string; readonly message: string };
}

/** Tokens for one delegate, in a new Secret or in the existing one. */
export interface IssueAction {
  readonly type: "issue";
  readonly member: string;
  readonly proxy: Stored<Pod>;
  readonly delegateUid: string;
  /** uid and version of the Secret whose tokens are replaced. */
  readonly replaces?: { readonly uid: string; readonly resourceVersion: string };
}

/** An event that says why pods of the namespace have no token in a member. */
export interface TellAction {
  readonly type: "tell";
  readonly member: string;
  readonly proxyUid: string;
  readonly message: string;
}

/** A write, or an event. */
export type Action = IssueAction | TellAction;
