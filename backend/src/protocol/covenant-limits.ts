/** What a covenant can write into the outputs of a mint, if that is less than a script may hold. */
export interface CovenantLimits {
  /** Bytes of a name with its dot and TLD, if there is one. */
  nameBytes: number
  /** Bytes of the locking script of output 2, including the owner's lock. */
  nameScriptBytes: number
}

/**
 * The limits of the covenant that `src/mining` builds. It writes lengths in one form each: a name behind a single
 * length byte, which ends at 75, and output 2 with a script length of three bytes at most, which ends at 65,535.
 */
export const COVENANT_LIMITS: CovenantLimits = { nameBytes: 75, nameScriptBytes: 65_535 }
