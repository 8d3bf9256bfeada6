import { onEachSharedLog } from '../../support/facts/shared-logs.js'
import { IS_NIGHTLY, sampleOf } from '../../support/nightly.js'
import { Random } from '../../support/random.js'
import { Gateways } from '../../support/writer/gateways.js'
import { raceFor } from '../../support/writer/races.js'

onEachSharedLog('three gateways over a log', (logs) => {
  test.each(sampleOf([1, 2], 2))('have one index after random histories at once, %d', async (seed) => {
    const log = await logs.create()
    const gateways = new Gateways()
    for (let count = 0; count < 3; count++) await gateways.add(await log.open())
    await raceFor(IS_NIGHTLY ? 25 : 10, { gateways, random: new Random(seed) })
    await gateways.expectEqual()
    await gateways.close()
  })
})
