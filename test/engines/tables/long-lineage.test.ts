import { EMPTY_MAP, mapRecordOf } from '../../../backend/src/graph/map-merge.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { History } from '../../support/graph/history.js'
import {
  bitcomTail,
  type FakeTransaction,
  inscriptionScript,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { onEachSqlEngine } from '../../support/storage/stores.js'

// One ordinal that adds to its metadata at every step: what is kept of the merged MAP, and what it costs.

const STEPS = 120

async function live() {
  const history = new History()
  const { chain } = history
  const coin = history.know(chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] }))
  const scripts = Array.from({ length: STEPS }, (_, step) =>
    concatBytes(p2pkh(1), bitcomTail([MAP_MARKER, 'ADD', 'a', 'x'.repeat(step + 1)])),
  )
  const origin = inscriptionScript({ contentType: 'text/plain', body: utf8('origin') })
  let last: FakeTransaction = coin
  for (const lockingScript of [origin, ...scripts]) {
    const inputs = [{ transaction: last, vout: 0 }]
    last = await history.submit(chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] }), 'later')
  }
  return { history, tip: parseOutpoint(last.outpoint(0)) }
}

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('what is kept of it grows with what was said, and a read takes little more than it answers with', async () => {
    const { history, tip } = await live()
    const { store, database } = await openStore()
    const service = new OrdinalsLookupService({ reader: store, writer: store })
    for (const notice of history.notices) {
      if ('spent' in notice) await service.outputSpent(notice.spent)
      else await service.outputAdmittedByTopic(notice.admitted)
    }
    const [sums] = await database.reader.all(
      'select sum(map_length) as said, sum(merged_length) as kept, count(merged_length) as count from graph_outputs',
      [],
    )
    expect(sums.count).toBeGreaterThan(3)
    expect(Number(sums.kept)).toBeLessThan(4 * Number(sums.said))
    const answer = JSON.stringify(mapRecordOf((await store.metadata.merged(tip)) ?? EMPTY_MAP)).length
    expect(await store.metadata.merged(tip, 2 * answer)).toBeDefined()
    expect(await store.metadata.merged(tip, answer / 4)).toBeUndefined()
  })
})
