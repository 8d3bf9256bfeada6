import { hostedOrdinals } from '../../../backend/src/lookup-services/services.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { History } from '../../support/graph/history.js'
import { directHooks } from '../../support/plugin/direct-hooks.js'
import {
  bitcomTail,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { openStore } from '../../support/storage/stores.js'

// How many bytes a store takes for metadata, against how many it was inscribed with.

/** Keys of one or two characters, each with a value of one. */
function tinyEntries(count: number, value = 'x'): string[] {
  return Array.from({ length: count }, (_, at) => [at.toString(36), value]).flat()
}

/** Bytes of the log and the index in use, with an ordinal in it that says this at each of its steps. */
async function storedBytes(steps: string[][]): Promise<{ stored: number; inscribed: number }> {
  const history = new History()
  const { chain } = history
  let last: FakeTransaction = history.know(
    chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] }),
  )
  let inscribed = 0
  for (const [at, words] of steps.entries()) {
    const lock = at === 0 ? inscriptionScript({ contentType: 'text/plain', body: utf8('a') }) : p2pkh(1)
    const tail = words.length === 0 ? new Uint8Array() : bitcomTail([MAP_MARKER, 'SET', ...words])
    inscribed += tail.length
    const outputs = [{ satoshis: 1, lockingScript: concatBytes(lock, tail) }]
    last = await history.submit(chain.spend({ inputs: [{ transaction: last, vout: 0 }], outputs }))
  }
  const { store, bytes, close } = await openStore()
  const service = hostedOrdinals({ ...directHooks(store), store, users: 0 })
  for (const notice of history.notices) {
    if ('spent' in notice) await service.outputSpent(notice.spent)
    else if (notice.admitted.mode === 'whole-tx') await service.outputAdmittedByTopic(notice.admitted)
  }
  const stored = bytes()
  await close()
  return { stored, inscribed }
}

test.each<[string, string[][]]>([
  ['in one output', [tinyEntries(2000)]],
  ['in one output, as many as are read', [tinyEntries(4900)]],
  ['in one output, and a tiny one after that', [tinyEntries(4900), ['a', '2']]],
  ['in several outputs', ['1', '2', '3', '4', '5', '6'].map((value) => tinyEntries(1500, value))],
  ['in many outputs', Array.from({ length: 40 }, (_, at) => tinyEntries(300, String(at % 10)))],
])('metadata of tiny keys %s takes less than six times its size', async (_, steps) => {
  const bare = await storedBytes(steps.map(() => []))
  const { stored, inscribed } = await storedBytes(steps)
  const times = (stored - bare.stored) / inscribed
  expect(times).toBeLessThan(6)
})
