#include "store/cluster/store_kind.h"
#include "store/hosted/store_kind.h"
#include "store/local/local.h"
#include "store/quorum/store_kind.h"
#include "store/redis/store.h"
#include "store/zookeeper/store_kind.h"

const struct store_kind *const stores[] = {
    &redis_kind,      &unix_kind,      &sentinel_kind, &cluster_kind, &zookeeper_kind,
    &postgresql_kind, &mysql_kind,     &mariadb_kind,  &exec_kind,    &git_file_kind,
    &git_ssh_kind,    &git_https_kind, &etcd_kind,     &local_kind,   NULL,
};

const struct store_kind *const store_of_several = &quorum_kind;
