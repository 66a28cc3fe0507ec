import type { ObjectRef, Pod, Secret, Stored } from "../../api/kubernetes.ts";

/** A proxy's delegate in one member, and the Secret with its tokens. */
export interface DelegateView {
  readonly member: string;
  /** Its API server answers, and its Secrets have been read. */
  readonly readable: boolean;
  readonly delegate: Stored<Pod>;
  /** Without its data. */
  readonly secret?: Stored<Secret>;
  /** Until when it is left as somebody else in the member keeps making it; epoch ms. Absent: it is not contested. */
  readonly leftUntil?: number;
}

/** Tokens of one delegate, as whoever issued them remembers. */
export interface IssuedTokens {
  readonly delegateUid: string;
  /** When they are to be replaced, by a clock that nobody sets; ms. */
  readonly renewAt: number;
  /** The same by the machine's time, which goes on while the machine is suspended, and which may be set; epoch ms. */
  readonly renewAtWall: number;
  /** The same by the host's clock, as their Secret's annotation has it (RFC 3339), for the next leader. */
  readonly noted: string;
}

/** Everything that one decision depends on. */
export interface Observed {
  readonly ref: ObjectRef;
  readonly proxy: Stored<Pod>;
  readonly delegates: readonly DelegateView[];
  /** What this controller has issued last. */
  readonly issued?: IssuedTokens;
  /** Until then the tokens are not asked for again; epoch ms. */
  readonly notBefore?: number;
  /** Why the delegate has no token though its author has not declined one; absent when that was told lately. */
  readonly untold?: { readonly member: string; readonly message: string };
}

/** Tokens for one delegate, in a new Secret or in the one that is there. */
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

/** One write. */
export type Action = IssueAction | TellAction;
