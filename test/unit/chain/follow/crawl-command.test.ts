import { runCrawl } from '../../../../src/cli/crawl.js'
import { readConfig } from '../../../../src/server/config/config.js'
import { keptOutput } from '../../../support/cli/commands.js'
import { useFollowWorlds } from '../../../support/follow/follow-world.js'
import { listening } from '../../../support/server/connections.js'
import { SILENT } from '../../../support/server/test-server.js'

// `minetree crawl` beside a service that has the store open.

const { world, folder } = useFollowWorlds()

const FOLLOW = {
  ...{ state: 'catching up', ordinals: 'names', mints: 1200, transfers: 34, height: 812_345 },
  ...{ sweep: { asked: 5, coins: 90 }, unproven: 6, failures: 7 },
  lastError: { at: 1, message: 'a source\nlied' },
}

async function crawlBeside(
  health: unknown,
): Promise<{ crawled: Promise<void>; written: () => Promise<string>; asked: string[] }> {
  const { open, env, url } = await world()
  const dataDir = await folder()
  const node = await open(dataDir)
  const asked: string[] = []
  const service = await listening(({ url = '' }, response) => {
    asked.push(url)
    response.end(JSON.stringify(health))
  })
  const { output, written } = keptOutput()
  const config = readConfig({ ...env, DATA_DIR: dataDir, PORT: new URL(service.url).port })
  const { signal } = new AbortController()
  const limits = { parallel: 2, namesOnly: false, maxUnproven: 10, maxTime: 60 }
  const crawled = runCrawl({ config, logger: SILENT, source: url, ...limits, signal, output }).finally(
    async () => {
      await service.close()
      await node.close()
    },
  )
  return { crawled, written, asked }
}

test('it reports how far the service is, and changes nothing', async () => {
  const { crawled, written, asked } = await crawlBeside({ status: 'ok', follow: FOLLOW })
  await crawled
  expect(asked).toEqual(['/health'])
  const stdout = await written()
  expect(stdout).toMatch(/^the service at http:\/\/127\.0\.0\.1:\d+ follows the chain: catching up\n/)
  expect(stdout).toContain('admitted since it started: 1200 mints and 34 transfers\n')
  expect(stdout).toContain('everything was asked about up to height 812345\n')
  expect(stdout).toContain('this sweep: 5 of about 90 coins\n')
  expect(stdout).toContain('  last: a source\\u000alied\n')
})

test.each<[string, unknown]>([
  ['does not follow the chain', { status: 'ok' }],
  ['is something else', 'hello'],
  ['says something else of what it follows', { follow: { state: 'unknown' } }],
])('where what listens there %s, it says that the store is in use', async (_, health) => {
  const { crawled } = await crawlBeside(health)
  await expect(crawled).rejects.toThrow('another minetree process has it open')
})
