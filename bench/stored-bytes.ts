import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { openNode } from '../src/server/node.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../test/support/protocol/fake-chain.js'
import { chainOfNames, configFor, LIVE_CODE_SIZE, SILENT, withFolder } from './support.js'

/**
 * Bytes on disk for each mint of an unproven chain, whose every BEEF holds all mints before it, as the chain grows from
 * 10 to 200: the mints 11 to 50 against the mints 161 to 200.
 */
export async function* storedBytes(): AsyncGenerator<string> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const purse = chain.spend({
    inputs: [],
    outputs: Array.from({ length: 200 }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK })),
  })
  const sizes = new Map<number, number>()
  await withFolder(async (folder) => {
    const node = await openNode({ config: configFor(chain, folder), logger: SILENT })
    const topics = Object.values(TOPICS)
    await node.overlay.engine.submit({ beef: beefOf(chain.genesis), topics })
    const unproven: FakeTransaction[] = []
    for (const [index, name] of chainOfNames(200).entries()) {
      const mint = chain.mint(name, { funding: [{ transaction: purse, vout: index }] })
      const beef = beefOf(mint, { proven: false, with: [chain.genesis, purse, ...unproven], unproven })
      await node.overlay.engine.submit({ beef: beef, topics })
      unproven.push(mint)
      if ([10, 50, 160, 200].includes(unproven.length)) sizes.set(unproven.length, sizeOf(folder))
    }
    await node.close()
  })
  const growth = (from: number, to: number): number =>
    ((sizes.get(to) ?? 0) - (sizes.get(from) ?? 0)) / (to - from)
  const [early, late] = [growth(10, 50), growth(160, 200)]
  yield `mints 11 to 50: ${Math.round(early)} bytes each; mints 161 to 200: ${Math.round(late)} bytes each`
  yield `ratio ${(late / early).toFixed(2)} (wanted: flat, so 1.0)`
}

/** The bytes of the pages in use of the store in a folder, the write-ahead log's included. */
export function sizeOf(folder: string): number {
  return Object.values(sizesOf(folder)).reduce((sum, size) => sum + size, 0)
}

/** The same of each of its SQLite files. */
export function sizesOf(folder: string): Record<string, number> {
  const files = readdirSync(folder).filter((file) => /\.(?:sqlite|db)$/.test(file))
  return Object.fromEntries(
    files.map((file) => {
      const database = new Database(join(folder, file))
      const { bytes } = database.prepare(SIZE).get() as { bytes: number }
      database.close()
      return [file, bytes]
    }),
  )
}

const SIZE = `select (page_count - freelist_count) * page_size as bytes
  from pragma_page_count, pragma_freelist_count, pragma_page_size`
