#include "store/cluster/store_record.h"
#include "store/hosted/store_record.h"
#include "store/local/local.h"
#include "store/quorum/store_record.h"
#include "store/redis/store.h"
#include "store/zookeeper/store_record.h"

const struct store_record *const stores[] = {
    &redis_record,      &unix_record,      &sentinel_record, &cluster_record, &zookeeper_record,
    &postgresql_record, &mysql_record,     &mariadb_record,  &exec_record,    &git_file_record,
    &git_ssh_record,    &git_https_record, &etcd_record,     &local_record,   NULL,
};

const struct store_record *const store_of_several = &quorum_record;
