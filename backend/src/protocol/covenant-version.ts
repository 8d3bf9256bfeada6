import { equalBytes, fromHex } from './bytes.js'

/**
 * The rules that a covenant has in addition to those of the live one (docs/covenant.md).
 *
 * - 1: none. A mint may have any transaction version and lock time, and its work is good for any owner.
 * - 2: a mint has transaction version 1 and lock time 0, and its nonce starts with `ownerCommitment`.
 */
export type CovenantVersion = (typeof COVENANT_VERSIONS)[number]
export const COVENANT_VERSIONS = [1, 2] as const

/** How every covenant of `src/mining` starts: the preimage is hashed, and its first byte made a number. */
const START = fromHex('76aa517f6b527e01f2')
/** Where the signature is checked, and the preimage taken apart; it is from there on that the versions differ. */
const SPLIT_AT = 138
const SPLITS: readonly [CovenantVersion, Uint8Array][] = [
  [1, fromHex('01447f77')],
  [2, fromHex('01447f7c81519d')],
]

/**
 * The version of a covenant that minetree deploys, read off its code; undefined for any other covenant, such as the live
 * one. A node has the code of its genesis, so the code overrides any setting.
 */
export function versionOfCode(code: Uint8Array): CovenantVersion | undefined {
  if (!equalBytes(code.subarray(0, START.length), START)) return undefined
  const found = SPLITS.find(([, split]) =>
    equalBytes(code.subarray(SPLIT_AT, SPLIT_AT + split.length), split),
  )
  return found?.[0]
}
