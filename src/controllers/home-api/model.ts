import type { Pod, Secret, Stored } from "../../api/kubernetes.ts";

export interface DelegateView {
  readonly member: string;
  /** The API server answers, and its Secrets have been read. */
  readonly readable: boolean;
  readonly delegate: Stored<Pod>;
  readonly secret?: Stored<Secret>;
  /** End of the hold while another manager in the member keeps changing the Secret; epoch ms. Absent: not held. */
  readonly leftUntil?: number;
}

export interface IssuedTokens {
  readonly delegateUid: string;
  /** Renewal by the monotonic clock; ms. */
  readonly renewAt: number;
  /** Renewal by the machine's clock, which runs while the machine is suspended and may be set; epoch ms. */
  readonly renewAtWall: number;
  /** Renewal by the host's clock, as in the Secret's annotation for the next leader (RFC 3339). */
  readonly noted: string;
}

export interface Observed {
  readonly proxy: Stored<Pod>;
  readonly delegates: readonly DelegateView[];
  readonly issued?: IssuedTokens;
  /** Epoch ms. */
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
  readonly replaces?: { readonly uid: string; readonly resourceVersion: string };
}

export interface TellAction {
  readonly type: "tell";
  readonly member: string;
  readonly proxyUid: string;
  readonly message: string;
}

export type Action = IssueAction | TellAction;
