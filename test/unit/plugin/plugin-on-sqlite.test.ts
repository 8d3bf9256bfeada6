import { IS_NIGHTLY } from '../../support/nightly.js'
import { ENGINE_VERSIONS } from '../../support/plugin/engines.js'
import { describePluginContract } from '../../support/plugin/plugin-contract.js'
import { useServers } from '../../support/server/test-server.js'

const { folder } = useServers()

// The others are tried on databases: test/system/plugin/plugin-in-hosts.test.ts. At night, every engine on each.
describePluginContract(async () => ({ name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' }), {
  engines: IS_NIGHTLY ? ENGINE_VERSIONS : ['0.4.6'],
})
