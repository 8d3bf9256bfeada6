import { equalBytes, fromHex } from './bytes.js'

/**
 * The rules that a covenant has in addition to those of the live one (docs/covenant.md).
 *
 * - 1: none. A mint may have any transaction version and lock time, and its work is good for any owner.
 * - 2: a mint has transaction version 1 and lock time 0, and its nonce starts with `ownerCommitment`.
 */
export type CovenantVersion = (typeof COVENANT_VERSIONS)[number]
export const COVENANT_VERSIONS = [1, 2] as const

/** How a covenant of `src/mining` starts, and what stands where its preimage is split: from there on the versions differ. */
interface CodeForm {
  start: Uint8Array
  splitAt: number
  splits: readonly [CovenantVersion | 'outdated', Uint8Array][]
}

const SPLIT_1 = fromHex('01447f77')
const SPLIT_2 = fromHex('01447f7c81519d')
const FORMS: readonly CodeForm[] = [
  {
    start: fromHex('76aa517f6b527e0172'),
    splitAt: 139,
    splits: [
      [1, SPLIT_1],
      [2, SPLIT_2],
    ],
  },
  // Written until 2026-11, with a negative divisor. Version 2 did not commit to the genesis then.
  {
    start: fromHex('76aa517f6b527e01f2'),
    splitAt: 138,
    splits: [
      [1, SPLIT_1],
      ['outdated', SPLIT_2],
    ],
  },
]

/**
 * The version of a covenant that minetree deploys, read off its code; undefined for any other covenant, such as the live
 * one. A node has the code of its genesis, so the code overrides any setting.
 */
export function versionOfCode(code: Uint8Array): CovenantVersion | undefined {
  const found = formOf(code)
  return found === 'outdated' ? undefined : found
}

/** Whether a covenant is a draft of version 2, whose nonces did not commit to the genesis. No public tree has it. */
export function isOutdatedCode(code: Uint8Array): boolean {
  return formOf(code) === 'outdated'
}

function formOf(code: Uint8Array): CovenantVersion | 'outdated' | undefined {
  const has = (bytes: Uint8Array, at: number): boolean =>
    equalBytes(code.subarray(at, at + bytes.length), bytes)
  const form = FORMS.find(({ start }) => has(start, 0))
  return form?.splits.find(([, split]) => has(split, form.splitAt))?.[0]
}
