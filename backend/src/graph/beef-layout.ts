import { BEEF_V1 } from '@bsv/sdk'
import { type Bump, encodeBump, readBump } from '../protocol/bump.js'
import { ByteCursor } from '../protocol/byte-cursor.js'
import { encodeVarint } from '../protocol/varint.js'
import type { Proof } from './records.js'

/** The SDK, which many a reader uses, takes the square of this to read a path; a block may hold any number of steps. */
const PATHS_A_BUMP = 16

/**
 * What stands around the raw transactions of a BEEF V1 (BRC-62) that stand parents first. The SDK's own writer sorts what
 * has a missing ancestor to the front, and the subject would no longer be last.
 *
 * Merkle paths of one block are written together. They were read when they came, so that they are trusted here, and
 * what they share is told by the root that each leads to: nothing is hashed, and each of their leaves is looked at once.
 */
export class BeefLayout {
  /** Each as it is kept, until another one joins it: as nodes to look up, a path takes ten times as much. */
  private readonly bumps: (Bump | Uint8Array)[] = []
  /** Of each block, the path that others join. */
  private readonly open = new Map<string, { index: number; paths: number }>()
  private count = 0

  /** Adds the next transaction. @returns What stands behind its raw bytes. */
  add(proof: Proof | undefined): Uint8Array {
    this.count++
    return proof === undefined ? Uint8Array.of(0) : Uint8Array.of(1, ...encodeVarint(this.indexOf(proof)))
  }

  /** What stands before the first transaction, in pieces, when all were added. A path takes time when its turn comes. */
  *head(): Generator<Uint8Array> {
    const version = new Uint8Array(4)
    new DataView(version.buffer).setUint32(0, BEEF_V1, true)
    yield version
    yield encodeVarint(this.bumps.length)
    for (const bump of this.bumps) yield encodeBump(trimmed(asBump(bump)))
    yield encodeVarint(this.count)
  }

  /** Of the path that holds this one from now on. */
  private indexOf({ merklePath, height, root }: Proof): number {
    // A store may know a height from before and after a reorg.
    const block = `${height} ${root} ${levelsOf(merklePath)}`
    const open = this.open.get(block)
    if (open !== undefined && open.paths < PATHS_A_BUMP) {
      const known = asBump(this.bumps[open.index] ?? merklePath)
      addLeaves(known, asBump(merklePath))
      this.bumps[open.index] = known
      open.paths++
      return open.index
    }
    const index = this.bumps.push(merklePath) - 1
    this.open.set(block, { index, paths: 1 })
    return index
  }
}

function asBump(path: Bump | Uint8Array): Bump {
  return 'levels' in path ? path : readBump(path, unreadable)
}

/** How many levels a path has: the byte behind its height. */
function levelsOf(path: Uint8Array): number {
  const cursor = new ByteCursor(path, unreadable)
  cursor.varint()
  return cursor.u8()
}

function unreadable(message: string): Error {
  return new Error(`a stored proof cannot be read: ${message}`)
}

/** Adds the leaves of a path to those of another of the same tree. */
function addLeaves(merged: Bump, { levels }: Bump): void {
  for (const [level, leaves] of levels.entries()) {
    const known = merged.levels[level]
    // One that stands beside a transaction here may be a transaction there.
    for (const [offset, leaf] of leaves) if (leaf.isTxid || !known?.has(offset)) known?.set(offset, leaf)
  }
}

/** Without the nodes that follow from the transactions below them. */
function trimmed({ height, levels: [lowest = new Map(), ...above] }: Bump): Bump {
  let led = new Set<number>()
  for (const [offset, { isTxid }] of lowest) if (isTxid) led.add(offset)
  const kept = above.map((level) => {
    led = new Set([...led].map((at) => at >>> 1))
    return new Map([...level].filter(([at]) => !led.has(at)))
  })
  return { height, levels: [lowest, ...kept] }
}
