import { describePluginContract } from '../../support/plugin/plugin-contract.js'
import { useServers } from '../../support/server/test-server.js'

const { folder } = useServers()

describePluginContract(async () => ({ name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' }))
