import { encodeAddress } from '../backend/src/protocol/address.js'
import { toHex } from '../backend/src/protocol/bytes.js'
import { p2pkh } from '../test/support/protocol/fake-chain.js'
import { compareWithBare } from './gateway.js'
import type { ListsReady } from './lists-server.js'
import { cpuRatio, roundsByTurns, shown, speedRatio, type Target, withProcess } from './load.js'

/** How fast a list is to be, as a multiple of a bare Express handler. */
const WANTED = 0.25

/**
 * What lists cost over 14,000 names and 20,000 inscriptions: the routes behind the pages of an explorer, each read from the
 * store, against a bare Express handler that sends the same bytes, in processes of their own. By turns. Then those that are
 * answered from memory between two writes; and any name of all, from memory, against any of a hundred.
 */
export async function* lists(): AsyncGenerator<string> {
  yield* withProcess('./lists-server.js', [], async function* (ready: ListsReady, server) {
    const { url, forgetful, names, nodes, old, txid } = ready
    const paths = names.map((name) => `/svc/names/${name}`)
    for (const path of paths) await (await fetch(url + path)).arrayBuffer()
    const named = (count: number): Target => ({
      ...{ origin: url, server, isShuffled: true },
      paths: paths.slice(0, count),
    })
    const all = await roundsByTurns({ some: named(100), all: named(paths.length) })
    yield shown(all)
    yield `names from memory: of ${paths.length} ${speedRatio(all.all, all.some).toFixed(2)} times as fast as of 100 by speed, ${cpuRatio(all.all, all.some).toFixed(2)} by CPU time (wanted: 0.95)`
    const comparedAt = (origin: string, paths: string[]): { target: Target; wanted: number } => ({
      target: { origin, server, paths: paths.map((path) => `/svc/gateway/${path}`) },
      wanted: WANTED,
    })
    const compared = (...paths: string[]) => comparedAt(forgetful, paths)
    const fromMemory = (...paths: string[]) => comparedAt(url, paths)
    const owner = encodeAddress(toHex(p2pkh(7).subarray(3, 23)), 'main')
    yield* compareWithBare('express', {
      counts: compared('counts'),
      'newest names, 50': compared('newest/names?limit=50'),
      'newest inscriptions, 50': compared('newest/inscriptions?limit=50'),
      'newest inscriptions, 10': compared('newest/inscriptions?limit=10'),
      'root of the tree': compared('tree'),
      'nodes of the tree': compared(...nodes.map((node) => `tree/${node}`)),
      'newest 50 of 1,000 steps': compared(`history/${old}?order=newest&limit=50`),
      'oldest 50 of 1,000 steps': compared(`history/${old}?order=oldest&limit=50`),
      'ordinals by owner, 50': compared(`ordinals?owner=${owner}&limit=50`),
      'ordinals by content type, 50': compared('ordinals?contentType=image%2Fpng&limit=50'),
      transaction: compared(`transactions/${txid}`),
      search: compared('search?text=a', 'search?text=abc', `search?text=${old}`, `search?text=${txid}`),
    })
    yield* compareWithBare('express', {
      'newest inscriptions, from memory': fromMemory('newest/inscriptions'),
      'newest inscriptions, from memory, with a query that changes nothing':
        fromMemory('newest/inscriptions?q'),
      'nodes of the tree, from memory': fromMemory(...nodes.map((node) => `tree/${node}`)),
    })
  })
}
