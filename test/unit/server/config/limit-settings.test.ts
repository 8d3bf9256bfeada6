import { readFileSync } from 'node:fs'
import type { OpenapiDocument } from '../../../../src/gateway/openapi/document.js'
import { ConfigError, readConfig } from '../../../../src/server/config/config.js'
import { LIMITS } from '../../../../src/server/config/limits.js'
import { useServers } from '../../../support/server/test-server.js'

type Name = keyof typeof LIMITS
const entries = Object.entries(LIMITS) as [Name, (typeof LIMITS)[Name]][]
const page = readFileSync('docs/settings.md', 'utf8')

test('where nothing is set, each limit is its usual one', () => {
  const usual = Object.fromEntries(entries.map(([name, { usual }]) => [name, usual]))
  expect(readConfig({}).limits).toMatchObject(usual)
})

test('the others are in proportion, or the same for every host', () => {
  const MiB = 1024 * 1024
  expect(readConfig({}).limits).toMatchObject({
    maxHeaderBytes: 16 * 1024,
    maxPathBytes: 12 * 1024,
    maxProvenInputs: 300_000,
    maxClientUploadBytes: 144 * MiB,
    maxSubmissionBytes: 256 * MiB,
    maxClientSubmissions: 25,
    maxBeefParts: 30_000,
    maxBeefDepth: 1000,
    maxUnprovenParts: 5000,
    maxScriptBytes: 72 * MiB,
    maxPendingTransactions: 100_013,
    maxSyncTransactions: 50_000,
    syncGraphTimeout: 600_000,
    headersTimeout: 15_000,
    stallTimeout: 60_000,
  })
  const small = { MAX_BODY_BYTES: '2048', MAX_BEEF_TRANSACTIONS: '1', MAX_WAITING_SUBMISSIONS: '1' }
  expect(readConfig({ ...small, REQUEST_TIMEOUT_MS: '20' }).limits).toMatchObject({
    ...{ maxScriptBytes: 2048, maxBeefDepth: 1, maxUnprovenParts: 2, maxClientSubmissions: 1 },
    ...{ headersTimeout: 1, stallTimeout: 4 },
  })
})

test.each(entries)('%s is what its setting says, within its bounds', (name, { setting, least, most }) => {
  const read = (value: number): number => readConfig({ [setting]: String(value) }).limits[name]
  expect([read(least), read(most)]).toEqual([least, most])
  for (const value of [least - 1, most + 1]) {
    expect(() => read(value)).toThrow(ConfigError)
    expect(() => read(value)).toThrow(
      new RegExp(`^${setting}: must be a whole number from ${least} to ${most}, not ${value}$`),
    )
  }
})

const server = await useServers().start()
const { paths } = (await server.ask('/openapi.json')).json as OpenapiDocument

test.each(Object.keys(paths))('docs/settings.md says what %s may cost, in bytes, CPU and time', (path) => {
  const rows = page
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter((cells) => cells[1]?.split(', ').includes(`\`${path}\``))
  expect(rows).toEqual([['', expect.any(String), ...new Array(3).fill(expect.stringMatching(/../)), '']])
})

test('docs/settings.md lists every limit with its default', () => {
  for (const [, { setting, usual }] of entries) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${setting}\``))
    expect({ setting, usual: row?.split('|')[2]?.trim() }).toEqual({ setting, usual: String(usual) })
  }
})
