import { join } from 'node:path'
import { builtPackage } from '../../support/cli/built-package.js'
import { rounds } from '../../support/nightly.js'
import { startHeaderService } from '../../support/server/header-service.js'
import { expectHeadersOutliveKills, longHeaderChain } from '../../support/server/killed-headers.js'
import { useServers } from '../../support/server/test-server.js'

const servers = useServers()

test('headers are linked and complete, though processes that store them are killed', async () => {
  const main = join(await builtPackage(), 'dist/cli/main.js')
  const chain = longHeaderChain()
  const env = { DATA_DIR: await servers.folder() }
  await expectHeadersOutliveKills({
    main,
    env,
    started: await startHeaderService(chain),
    chain,
    kills: rounds(1, 4),
  })
}, 600_000)
